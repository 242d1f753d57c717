import { expect, it } from 'vitest'
import { ConfigError } from './config-error.ts'
import { readConfig } from './read-config.ts'

function problemsOf(text: string): readonly string[] {
  try {
    readConfig(text, 'x.yaml', {})
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ path, message }) => `${path}: ${message}`)
  }
  return []
}

const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i},`.repeat(9)}]`)
const chain = Array.from({ length: 5_000 }, (_, i) => `c${i + 1}: &c${i + 1} [*c${i}]`)

it.each([
  ['10 MB', 'a'.repeat(10_000_000), 'larger than 1 MB'],
  ['a bomb of aliases', ['l0: &l0 [x]', ...levels].join('\n'), 'aliases expand to more than 10000'],
  ['a chain of aliases', ['c0: &c0 [x]', ...chain].join('\n'), 'aliases are nested too deep'],
  ['an alias in itself', 'tiers: &a { b: *a }', 'no value before this has the anchor &a'],
  ['brackets without end', '['.repeat(500_000), 'nested too deep'],
  ['brackets with an end', `${'['.repeat(5_000)}${']'.repeat(5_000)}`, 'nested too deep'],
  ['dashes without end', '- '.repeat(400_000), 'nested too deep'],
  ['much indentation', `tiers:\n${' '.repeat(300)}a: 1/1s`, 'nested too deep'],
  ['a prototype', '__proto__: { tiers: { a: 1/1s } }', '__proto__: this name cannot be used'],
  ['a client __proto__', 'tiers: { a: 1/1s }\nclients: { __proto__: a }', 'name cannot be used'],
  ['a name that is a list', '? [a]\n: b', 'a name must be a string'],
  ['a merge of YAML 1.1', '%YAML 1.1\n---\na: &a {b: c}\n<<: *a', 'a name must be a string'],
  [
    'a date of YAML 1.1',
    '%YAML 1.1\n---\ntiers: { a: 2001-01-01 }',
    'is of a type that is not supported',
  ],
])('refuses %s', (_, text, expected) => {
  expect(problemsOf(text).join('\n')).toContain(expected)
})

it('reports eighty thousand unknown names in linear time', () => {
  const names = Array.from({ length: 80_000 }, (_, i) => `k${i}: 1`).join('\n')
  expect(problemsOf(names)).toHaveLength(80_001)
}, 20_000)

it('reports a problem, and never throws another error, for any type of value in any place', () => {
  const file = {
    listen: { host: 'a', port: 1 },
    api: 8081,
    store: { url: 'redis://a', prefix: 'p', maxKeys: 1, timeoutMs: 1, onFailure: 'open' },
    tiers: { a: ['1/1s'] },
    defaultTier: 'a',
    clients: { k: 'a' },
    overrides: { k: '1/1s' },
    key: ['address'],
    trustProxy: ['10.0.0.1'],
    allowList: ['10.0.0.1'],
    headers: ['x'],
    upstreams: { m: { url: 'echo', timeoutMs: 1 } },
    routes: [{ path: '/a', methods: ['GET'], match: { headers: { h: 'v' } }, open: true }],
    admin: { tokens: [{ token: 'x'.repeat(16), access: 'read' }] },
    limits: { bodyBytes: 1 },
  }
  expect(problemsOf(JSON.stringify(file))).toEqual([])
  const wrong = [null, -1, 1e300, false, '\u0000', '', [[]], [null], { x: { y: [] } }]
  const accepted: string[] = []
  let count = 0
  const replaceEach = (value: unknown, path: string, put: (other: unknown) => void) => {
    for (const other of wrong) {
      put(other)
      count += 1
      if (problemsOf(JSON.stringify(file)).length === 0)
        accepted.push(`${path} ${JSON.stringify(other)}`)
    }
    put(value)
    if (typeof value !== 'object' || value === null) return
    const table = value as Record<string, unknown>
    for (const [name, item] of Object.entries(table)) {
      replaceEach(item, `${path}.${name}`, (other) => {
        table[name] = other
      })
    }
  }
  for (const [name, value] of Object.entries(file)) {
    replaceEach(value, name, (other) => {
      ;(file as Record<string, unknown>)[name] = other
    })
  }
  expect(count).toBeGreaterThan(300)
  // Valid: any string as a header's value, an odd prefix, a flag that is false.
  expect(accepted).toEqual([
    'store.prefix "\\u0000"',
    'routes.0.match.headers.h "\\u0000"',
    'routes.0.match.headers.h ""',
    'routes.0.open false',
  ])
})
