import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { simulateCommand } from '../packages/server/src/cli/simulate-command.ts'
import { readConfig } from '../packages/server/src/config/read-config.ts'
import type { Report, RuleSetReport } from '../packages/server/src/simulate/report/report.ts'
import { closeAll, start } from './server/service.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-routes-'))
afterAll(() => rmSync(folder, { recursive: true }))
afterEach(closeAll)

let files = 0
function fileOf(text: string): string {
  files += 1
  const file = join(folder, `${files}.yaml`)
  writeFileSync(file, text)
  return file
}

async function output(args: readonly string[], log: string): Promise<string> {
  let output = ''
  await simulateCommand.run(args, {
    input: () => Readable.from([Buffer.from(log)]),
    inputIsTerminal: false,
    write: async (text) => {
      output += text
    },
    note: () => {},
  })
  return output
}

async function reportOf(yaml: string, log: string, ...args: string[]): Promise<RuleSetReport> {
  const report: Report = JSON.parse(
    await output(['--config', fileOf(yaml), '--json', ...args], log),
  )
  return report.ruleSets[0]
}

const yaml = `
tiers:
  free: 6/1h fixed-window
key: address
trustProxy: 1
upstreams:
  main: echo
routes:
  - { name: health, path: /health, open: true }
  - { name: login, path: /login, methods: [POST], rules: 2/1h fixed-window }
  - { name: trial, path: /trial/**, rules: 1/1h fixed-window, shadow: true }
  - { name: search, path: /search/*, cost: 3 }
  - { name: each, path: /each, rules: 2/1h fixed-window, key: [address, route] }
  - { name: together, path: /together, rules: 3/1h fixed-window, key: route }
  - { name: rest, path: /api/** }
`

/** The requests of the log, in order. */
const asked: readonly (readonly [client: string, method: string, target: string])[] = [
  ...Array.from({ length: 9 }, () => ['192.0.2.1', 'GET', '/health'] as const),
  ...Array.from({ length: 4 }, () => ['192.0.2.1', 'POST', '/LOGIN/'] as const),
  ['192.0.2.2', 'POST', '/login;v=1'],
  ...Array.from({ length: 3 }, () => ['192.0.2.1', 'GET', '/trial/a/b'] as const),
  ['192.0.2.1', 'GET', '/search/a%62?q=1'],
  ['192.0.2.1', 'GET', '/search//b'],
  ['192.0.2.1', 'GET', '/search/c'],
  ['192.0.2.2', 'GET', '/search/c'],
  ...Array.from({ length: 4 }, () => ['192.0.2.2', 'GET', '/api/x'] as const),
  ...Array.from({ length: 3 }, () => ['192.0.2.1', 'GET', '/each'] as const),
  ...Array.from({ length: 4 }, (_, i) => [`192.0.2.${i}`, 'GET', '/together'] as const),
  ['192.0.2.1', 'GET', '/login'],
  ['192.0.2.1', 'GET', '/search/a%2fb'],
  ['192.0.2.1', 'GET', '/search/a/b'],
  ['192.0.2.1', 'GET', '/api/say"hi"'],
]

const time = '16/Nov/2026:18:00:00 +0000'
const combined = asked
  .map(([client, method, target]) => {
    const text = target.replaceAll('"', '\\x22')
    return `${client} - - [${time}] "${method} ${text} HTTP/1.1" 200 5 "-" "-"`
  })
  .join('\n')
const json = asked
  .map(([ip, method, url]) => JSON.stringify({ ts: 1_794_852_000, ip, req: { method, url } }))
  .join('\n')

describe('the routes of a configuration', () => {
  it('refuse the requests of a log that the gateway refuses', async () => {
    const { gatewayUrl, apiUrl } = await start({
      ...readConfig(yaml, 'a.yaml', {}),
      listen: { host: '127.0.0.1', port: 0 },
      api: { host: '127.0.0.1', port: 0 },
    })
    const seen = { refused: 0, lost: 0 }
    for (const [client, method, target] of asked) {
      const headers = { 'x-forwarded-for': client }
      // As a text: the constructor of URL would tidy it up.
      const { status } = await fetch(`${gatewayUrl}${target.replaceAll('"', '%22')}`, {
        ...{ method, headers },
      })
      if (status === 429) seen.refused += 1
      if (status === 404 || status === 400) seen.lost += 1
    }
    const metrics = await (await fetch(`${apiUrl}/metrics`)).text()
    const counted = new Map<string, number>()
    for (const [, route, outcome, count] of metrics.matchAll(
      /^sluice_decisions_total\{route="(\w+)".*outcome="(\w+)".*\} (\d+)$/gm,
    )) {
      counted.set(`${route} ${outcome}`, Number(count))
    }
    expect(seen).toEqual({ refused: 7, lost: 3 })

    for (const log of [combined, json]) {
      const report = await reportOf(yaml, log)
      const { refused, shadowed, lost, open, byRoute } = report
      expect({ refused: refused - shadowed, lost }).toEqual(seen)
      expect([open, report.requests]).toEqual([9, asked.length])
      const played = new Map<string, number>()
      for (const { route, mode, requests, refused: no } of byRoute) {
        if (mode === 'open') continue
        if (requests > no) played.set(`${route} allowed`, requests - no)
        if (no > 0) played.set(`${route} ${mode === 'shadow' ? 'shadowed' : 'refused'}`, no)
      }
      expect(played).toEqual(counted)
    }
  })

  it('are reported by name, with their costs, and shadow routes refuse nothing', async () => {
    const text = await output(['--config', fileOf(yaml), '--top', '0'], combined)
    const lines = text.split('\n')
    const from = lines.findIndex((line) => line.startsWith('  route'))
    expect(lines.slice(from, from + 8)).toEqual([
      '  route           requests  units     refused  would be refused',
      '  health (open)          9',
      '  login                  5      5    2 (40 %)',
      '  rest                   5      5    2 (40 %)',
      '  search                 4     12    1 (25 %)',
      '  together               4      4    1 (25 %)',
      '  trial (shadow)         3      3                    2 (66.7 %)',
      '  each                   3      3  1 (33.3 %)',
    ])
    const page = join(folder, 'page.html')
    expect(text).toContain('9 (25 %) on open routes, where nothing is counted')
    expect(text).toContain('3 (8.33 %) that match no route: 404 or 400, and not counted')
    await output(['--config', fileOf(yaml), '--html', page], combined)
    const cells = readFileSync(page, 'utf8').replaceAll(/<.*?>/g, '').replaceAll(/\n+/g, ',')
    expect(cells).toContain('route,requests,units,refused,would be refused,health (open),9,')
    expect(cells).toContain(',login,5,5,2 (40 %),')
    expect(cells).toContain(',trial (shadow),3,3,2 (66.7 %),')
  })

  it('are recognized by name in a decision log, at the present costs', async () => {
    const line = (route: string, more = {}) =>
      JSON.stringify({ time: '2026-11-16T18:00:00Z', key: 'a', route, cost: 1, ...more })
    const decided = { outcome: 'allowed' }
    const lines = [
      ...[1, 2, 3].map(() => line('search', decided)),
      // Asked for over the API, which says a cost.
      line('each', { ...decided, cost: 2, api: true }),
      line('', { ...decided, cost: 9 }),
    ]
    const report = await reportOf(yaml, lines.join('\n'))
    expect(report.byRoute).toEqual([
      { route: 'search', mode: 'limited', requests: 3, units: 9, refused: 1 },
      { route: 'each', mode: 'limited', requests: 1, units: 2, refused: 0 },
    ])
    expect(report.byRule).toContainEqual({ rule: 'cost above capacity', refused: 1 })
    // An explicit cost counts.
    const named = await reportOf(yaml, lines.join('\n'), '--cost-field', 'cost')
    expect(named.byRoute[0]).toMatchObject({ route: 'search', units: 3 })
  })

  it('that differ only in their upstream need no path in the log', async () => {
    const same = `
tiers: { free: 4/1h }
upstreams: { a: 'http://127.0.0.1:1', b: 'http://127.0.0.1:2' }
routes:
  - { path: /a/**, upstream: a, cost: 2 }
  - { path: /**, upstream: b, cost: 2 }
`
    const log = Array(3).fill('{"ts":1,"ip":"192.0.2.1"}').join('\n')
    const pathless = await reportOf(same, log)
    expect(pathless).toMatchObject({ refused: 1, units: 6, byRoute: [] })
    const withPaths = await reportOf(same, combined, '--key', 'address')
    expect(withPaths.byRoute.map(({ route }) => route)).toEqual(['/**'])
    const line = `192.0.2.1 - - [${time}] "GET / HTTP/1.1" 200 5`
    const scenario = ['--scenario', 'steady', '--for', '1s', '--config', fileOf(same)]
    expect(await output(scenario, '')).toContain('refused')
    expect((await reportOf(same.replace('cost: 2 }', 'cost: 3 }'), line)).units).toBe(2)
  })

  it('report the settings that they ignored', async () => {
    const lists = yaml.replace('key: address', 'key: address\ndenyList: [192.0.2.1]')
    expect((await reportOf(lists, combined)).leftOut).toEqual(['denyList'])
    expect(await output(['--config', fileOf(lists)], combined)).toContain('ignored: denyList')
  })

  it('in shadow mode cause no retries', async () => {
    const scenario = ['--scenario', 'retry-storm', '--clients', '2', '--for', '10s', '--json']
    const retriesOf = async (more: string) => {
      const file = fileOf(`tiers: { free: 1/1h }\nroutes: [{ path: /**${more} }]\n`)
      const report: Report = JSON.parse(await output([...scenario, '--config', file], ''))
      return report.ruleSets[0].retries
    }
    expect(await retriesOf('')).toBeGreaterThan(0)
    expect(await retriesOf(', shadow: true')).toBe(0)
  })
})

describe('a configuration that needs fields the log lacks', () => {
  const at = '"time":"2026-11-16T18:00:00Z","ip":"192.0.2.1"'
  const line = (more: string) => `{${at}${more}}`
  const routes = (route: string, key = 'address') =>
    `tiers: { free: 3/1h }\nkey: ${key}\nroutes:\n  - { ${route} }\n  - { path: /** }\n`

  it.each([
    ['a path', routes('path: /a, cost: 2'), line(''), /routes.*depend on the path.*--path-field/],
    ['a method', routes('path: /a, methods: [GET]'), line(',"path":"/a"'), /--method-field/],
    ['a host', routes('path: /a, host: a.example'), line(',"path":"/a"'), /--host-field/],
    [
      ...(['a header', routes("path: /a, match: { headers: { x-b: '1' } }")] as const),
      ...[
        line(',"path":"/a"'),
        /depends on the header x-b, which logs do not have\..*decision log/,
      ],
    ],
    [
      ...(['a key', routes('path: /a', 'header:x-user'), line(',"path":"/a"')] as const),
      /the route "\/a" counts by header:x-user, which the log does not have.*--key-field/,
    ],
    [
      ...(['a known name', routes('path: /a, cost: 2')] as const),
      ...['{"time":1,"key":"a","outcome":"allowed","route":"b"}', /names the route "b".*"\/a"/],
    ],
  ] as [string, string, string, RegExp][])(
    'is refused: the log lacks %s',
    async (_, text, log, why) => expect(reportOf(text, log)).rejects.toThrow(why),
  )

  it('is refused for a scenario, which has no paths', () =>
    expect(
      output(['--scenario', 'steady', '--config', fileOf(routes('path: /a, cost: 2'))], ''),
    ).rejects.toThrow(/depend on the path of requests.*access log/))

  it('is accepted if options name the fields of path, method, host and key', async () => {
    const text = routes('path: /a, methods: [PUT], host: a.example, cost: 0', 'header:x-user')
    const fields = ['--path-field', 'x.p', '--method-field', 'm', '--host-field', 'h']
    const args = [...fields, '--key-field', 'k']
    const log = [
      line(',"x":{"p":"/A?b"},"m":"put","h":"A.example:80","k":"x-user:alice"'),
      line(',"x":{"p":"https://b.example/a"},"m":"PUT","h":"b.example","k":"x-user:alice"'),
      line(',"x":{"p":"PUT /a HTTP/1.1"},"h":"a.example","k":"x-user:alice"'),
      line(',"x":{"p":"/a"},"m":"GET","h":"a.example","k":"x-user:alice"'),
      line(',"x":{"p":7},"m":"GET","h":"a.example","k":"x-user:alice"'),
    ]
    const report = await reportOf(text, log.join('\n'), ...args)
    expect(report.byRoute.map(({ route, requests }) => [route, requests])).toEqual([
      ['PUT a.example/a', 2],
      ['/**', 2],
    ])
    await expect(output(['--path-field', 'p'], log[0])).rejects.toThrow('needs --config')
  })
})
