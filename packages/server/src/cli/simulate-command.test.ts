import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { createLimiter, parseRule } from 'sluice'
import { manualClock } from 'sluice/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LogSource, Report } from '../simulate/report/report.ts'
import { simulateCommand } from './simulate-command.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-simulate-'))
})
afterAll(() => rm(folder, { recursive: true }))

type Input = string | Buffer | Error

async function run(args: readonly string[], input: Input = '') {
  const printed = { output: '', notes: [] as string[], statuses: [] as string[] }
  await simulateCommand.run(args, {
    async *input() {
      if (input instanceof Error) throw input
      const bytes = Buffer.from(input as string)
      // In small pieces, as from a slow pipe.
      for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7)
    },
    inputIsTerminal: false,
    async write(text) {
      printed.output += text
    },
    note: (line) => void printed.notes.push(line),
    status: (text) => void printed.statuses.push(text),
  })
  return printed
}

async function report(args: readonly string[], input: Input = ''): Promise<Report> {
  return JSON.parse((await run(['--json', ...args], input)).output)
}

const combined = (second: number, address = '192.0.2.1', user = '-') =>
  `${address} - ${user} [16/Nov/2026:18:00:${String(second).padStart(2, '0')} +0000] "GET / HTTP/1.1" 200 5 "-" "curl/8"`

const times = [0, 0, 0, 10]
const formats: Record<string, string> = {
  combined: times.map((second) => combined(second)).join('\n'),
  json: times
    .map((second) => JSON.stringify({ ts: 1_794_852_000 + second, ip: '192.0.2.1', status: 200 }))
    .join('\n'),
  csv: [
    'status,"time",client',
    ...times.map((second) => `200,"2026-11-16T18:00:${second || '00'}Z",192.0.2.1`),
  ].join('\n'),
  decisions: times
    .map((second) => {
      const time = new Date(Date.UTC(2026, 10, 16, 18, 0, second)).toISOString()
      return JSON.stringify({ time, key: '192.0.2.1', cost: 1, outcome: 'allowed', tier: 'free' })
    })
    .join('\n'),
}

describe.each(Object.entries(formats))('the format %s', (format, text) => {
  it('is detected, read from standard input or a file, plain or gzip', async () => {
    const args = ['--rule', '2/10s fixed-window']
    const found = await report(args, text)
    expect(found.source).toMatchObject({ lines: 4, unreadable: 0 })
    expect((found.source as LogSource).formats[0]).toContain(format)
    expect(found.traffic).toMatchObject({ requests: 4, clients: 1, spanMs: 10_000 })
    expect(found.ruleSets[0]).toMatchObject({ requests: 4, allowed: 3, refused: 1 })
    expect(found.ruleSets[0].top).toEqual([{ key: '192.0.2.1', requests: 4, refused: 1 }])
    const { source: _, ...figures } = found

    // The name does not reveal the compression.
    for (const [name, bytes] of [
      ['plain.gz', Buffer.from(text)],
      ['packed.log', Buffer.concat([gzipSync(text.slice(0, 9)), gzipSync(text.slice(9))])],
    ] as const) {
      const file = join(folder, name)
      await writeFile(file, bytes)
      expect(await report([file, ...args])).toMatchObject(figures)
    }
    expect(await report(['--format', format, ...args], text)).toMatchObject(figures)
    expect(await report(['-', ...args], gzipSync(text))).toMatchObject(figures)
  })
})

it('refuses the same requests as the limiter that decides line by line', async () => {
  const step = fc.record({
    key: fc.constantFrom('a', 'b', 'é\\"'),
    afterUs: fc.oneof(fc.nat(3), fc.nat(90_000)),
    asNumber: fc.boolean(),
  })
  const rule = '7/1s burst 3'
  let refusals = 0
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 1, maxLength: 100, size: 'max' }),
    async (steps) => {
      const clock = manualClock()
      const limiter = createLimiter(parseRule(rule), { clock })
      const refused = new Map<string, number>()
      const lines = steps.map(({ key, afterUs, asNumber }) => {
        clock.advance(afterUs / 1_000)
        if (!limiter.allow(key)) refused.set(key, (refused.get(key) ?? 0) + 1)
        const us = clock.nowUs()
        const iso = `${new Date(Math.floor(us / 1e6) * 1e3).toISOString().slice(0, 19)}.`
        const fraction = String(us % 1e6).padStart(6, '0')
        return JSON.stringify({ time: asNumber ? us : `${iso}${fraction}Z`, key })
      })
      const { ruleSets } = await report(['--rule', rule, '--top', '1000'], lines.join('\n'))
      expect(new Map(ruleSets[0].top.map((each) => [each.key, each.refused]))).toEqual(refused)
      refusals += ruleSets[0].refused
    },
  )
  await fc.assert(property, { numRuns: 50 })
  expect(refusals).toBeGreaterThan(100)
})

describe('fields', () => {
  const line = { at: '2026-11-16T18:00:00Z', req: { id: 7 }, units: 3, plan: 'pro' }
  it('are named by the user, also within objects', async () => {
    const args = ['--time-field', 'at', '--key-field', 'req.id', '--rule', '5/1s']
    const found = await report(args, `${JSON.stringify(line)}\n${JSON.stringify(line)}\n`)
    expect(found.traffic).toMatchObject({ requests: 2, units: 6, clients: 1 })
    expect(found.ruleSets[0].top).toEqual([{ key: '7', requests: 2, refused: 1 }])
    expect(found.ruleSets[0].byTier).toEqual([
      { tier: 'pro', requests: 2, refused: 1, clients: 1, refusedClients: 1 },
    ])
  })

  it('stay those of the first line that has them: keys of two kinds are not mixed', async () => {
    const { source } = await report(
      [],
      '{"ts":1,"ip":"192.0.2.1"}\n{"ts":2,"user":"alice"}\n{"ts":3,"ip":"192.0.2.1"}\n',
    )
    expect(source).toMatchObject({
      lines: 3,
      unreadable: 1,
      problems: [{ file: 'standard input', line: 2, reason: 'it has no field "ip" for the key' }],
    })
  })

  it('of the combined format are the address or the user, or else the address', async () => {
    const text = [combined(0, 'a', 'alice b'), combined(0, 'b', 'alice b'), combined(1)].join('\n')
    const by = async (key: string) => (await report(['--key', key], text)).traffic.clients
    expect([await by('address'), await by('user')]).toEqual([3, 2])
  })
})

it('reads JSON that has an outcome field of its own as JSON', async () => {
  const line = JSON.stringify({ ts: 1, ip: '192.0.2.1', outcome: 'success' })
  const { source } = await report([], `${line}\n`)
  expect(source).toMatchObject({
    unreadable: 0,
    formats: ['standard input: json, time from "ts", key from "ip"'],
  })
})

it('reports that there were more clients than it tracks, on the page too', async () => {
  const text = ['a', 'b', 'c', 'd', 'e']
    .map((key, i) => JSON.stringify({ time: 1, key, outcome: i > 1 ? 'allowed' : 'unheard of' }))
    .join('\n')
  const file = join(folder, 'many.html')
  const args = ['--max-clients', '2', '--rule', '1/1s', '--html', file]
  const { output } = await run(args, text)
  const page = await readFile(file, 'utf8')
  for (const shown of [output, page]) {
    expect(shown).toContain('by more than 2 clients')
    expect(shown).toContain('requests of clients beyond --max-clients: 3')
  }
  expect(output).toContain('as before, 2 unknown')
  expect(page).toContain('Requests without an outcome in the log: 2')
})

it('suggests nothing where all costs are 0', async () => {
  const file = join(folder, 'free.html')
  const { output, notes } = await run(['--html', file], '{"time":1,"key":"a","cost":0}')
  expect(notes).toEqual([`Wrote ${file}`])
  for (const shown of [output, await readFile(file, 'utf8')]) {
    expect(shown).toContain('No limit to suggest: all costs are 0.')
  }
})

describe('broken lines', () => {
  it('are counted and reported, and the others are simulated', async () => {
    const hostile = Buffer.concat([
      Buffer.from(`${combined(0)}\nnonsense\n\n192.0.2.1 - - [yesterday] "GET /"\n`),
      Buffer.of(0xff, 0xfe, 10),
      Buffer.from(`${'x'.repeat(1_100_000)}\n\0\0\n${'k'.repeat(1_025)}${combined(0)}\n`),
      Buffer.from(combined(1)),
    ])
    const { source, traffic } = await report([], hostile)
    expect(traffic.requests).toBe(2)
    expect(source).toMatchObject({ lines: 8, unreadable: 6 })
    expect((source as LogSource).problems).toEqual(
      [
        [2, 'it is not ADDRESS - USER [TIME] …'],
        [4, 'the time cannot be read'],
        [5, 'it is not UTF-8'],
        [6, 'it is longer than 1,048,576 bytes'],
        [7, 'it is not ADDRESS - USER [TIME] …'],
      ].map(([line, reason]) => ({ file: 'standard input', line, reason })),
    )
    expect((await run([], hostile)).output).toContain('unreadable lines: 6 (75 %)')
  })

  it('in JSON may name anything, and change nothing', async () => {
    const text = [
      '{"time":1,"key":"__proto__","cost":1}',
      '{"time":1,"key":"constructor","tier":"__proto__"}',
      '{"__proto__":{"key":"a"},"time":1}',
      '{"time":1,"key":"a","cost":-1}',
      '{"time":1,"key":"a","cost":1.5}',
      '{"time":1,"key":["a"]}',
      '{"time":true,"key":"a"}',
      '[1]',
      'null',
      '{"time":1,"key":"a"',
      '{"time":1,"key":""}',
      '{"time":1,"key":"\\ud800"}',
      '{"time":"9999-12-31T23:59:59Z","key":"a"}',
      `{"time":1,"key":${'['.repeat(100_000)}`,
    ].join('\n')
    const found = await report(['--rule', '1/1s'], text)
    expect(found.source).toMatchObject({ lines: 14, unreadable: 11 })
    expect(found.traffic).toMatchObject({ requests: 3, clients: 3 })
    expect(({} as { key?: string }).key).toBeUndefined()
  })

  it('in CSV are those with another number of values, or an open quote', async () => {
    const text = 'time,key\n1,a\n1,a,b\n1\n1,"a\n1,"a ""b"", c"\n'
    const { source, traffic } = await report(['--rule', '1/1s'], text)
    expect(source).toMatchObject({ lines: 5, unreadable: 3 })
    expect(traffic).toMatchObject({ requests: 2, clients: 2 })
  })

  it('in CSV may repeat the names of unused columns', async () => {
    const { source, traffic } = await report([], 'time,,note,key,,note\n1,x,x,a,x,x\n2,x,x,b,x,x\n')
    expect(source).toMatchObject({ lines: 2, unreadable: 0 })
    expect(traffic).toMatchObject({ requests: 2, clients: 2 })
    await expect(run([], 'time,key,key\n1,a,b\n')).rejects.toMatchObject({
      code: 'SLUICE_OPTION',
      message: expect.stringContaining('has the name "key" twice'),
    })
  })

  it.each([
    ['', 'the log is empty: there is no request to simulate.'],
    ['\n\n', 'the log is empty'],
    ['hello\nworld\n', 'cannot detect the format of a log that begins with "hello".'],
    ['{"a":1}\n', 'none of 1 lines can be read. The first, standard input:1: it has none of the'],
  ])('are an error when there is nothing else: %j', async (text, message) => {
    await expect(run([], text)).rejects.toThrow(message)
    await expect(run([], text)).rejects.toMatchObject({ code: 'SLUICE_OPTION' })
  })
})

it('puts lines in order, and the clock never steps back', async () => {
  const seconds = [5, 3, 4, 6]
  const text = seconds.map((second) => combined(second)).join('\n')
  const found = await report(['--rule', '1/1s'], text)
  expect(found.source).toMatchObject({ reordered: 2, late: 0 })
  expect(found.ruleSets[0].refused).toBe(0)
  expect(found.traffic.startTime).toBe('2026-11-16T18:00:03.000Z')

  // More lines than the reorder buffer holds: the first of all comes too late.
  const many = [...Array(5_000).fill(combined(9)), combined(1)].join('\n')
  const late = await report([], many)
  expect(late.source).toMatchObject({ reordered: 0, late: 1 })
  expect(late.traffic).toMatchObject({ requests: 5_001, spanMs: 0 })
})

it('warns where times are whole seconds', async () => {
  const page = join(folder, 'seconds.html')
  const { output } = await run(['--html', page], [combined(1), combined(2)].join('\n'))
  expect(output).toContain('times are whole seconds')
  expect(await readFile(page, 'utf8')).toContain('times are whole seconds')
  const finer = ['{"time":1,"key":"a"}', '{"time":2.5,"key":"a"}'].join('\n')
  expect((await run([], finer)).output).not.toContain('whole seconds')
})

describe('a configuration', () => {
  const yaml = `
tiers:
  free: 1/1m
  pro: 2/1m
clients:
  alice: pro
overrides:
  bob: unlimited
routes:
  - name: login
    path: /login
    rules: 1/1h
  - name: health
    path: /health
    open: true
  - name: catch-all
    path: /**
`
  it('decides by tier, override and route, as the service does', async () => {
    const file = join(folder, 'sluice.yaml')
    await writeFile(file, yaml)
    const route = 'catch-all'
    const line = (key: string, more = {}) =>
      JSON.stringify({ time: '2026-11-16T18:00:00Z', key, route, outcome: 'allowed', ...more })
    const text = [
      ...['carol', 'carol', 'alice', 'alice', 'alice', 'bob', 'bob'].map((key) => line(key)),
      line('dave', { tier: 'pro', route: '' }),
      line('dave', { tier: 'pro', route: '' }),
      line('erin', { tier: 'gone' }),
      line('erin', { route: 'login' }),
      line('erin', { route: 'login' }),
      line('erin', { route: 'health' }),
    ].join('\n')
    const { ruleSets } = await report(['--config', file, '--rule', '1/1m'], text)
    expect(ruleSets.map(({ name }) => name)).toEqual(['1/1m', file])
    const [, config] = ruleSets
    expect(config.byTier).toEqual([
      { tier: 'free', requests: 6, refused: 2, clients: 2, refusedClients: 2 },
      { tier: 'pro', requests: 5, refused: 1, clients: 2, refusedClients: 1 },
      { tier: 'override', requests: 2, refused: 0, clients: 1, refusedClients: 0 },
    ])
    expect(config.change).toMatchObject({ newlyRefused: 3, stillAllowed: 10, unknown: 0 })
  })

  it('moves clients to other tiers than those in the log', async () => {
    const file = join(folder, 'moved.yaml')
    await writeFile(file, yaml)
    const line = (key: string, tier: string, route: string) =>
      JSON.stringify({ time: '2026-11-16T18:00:00Z', key, tier, route, outcome: 'allowed' })
    const text = [
      ...Array(2).fill(line('alice', 'free', 'catch-all')),
      ...Array(2).fill(line('alice', 'free', '')),
      ...Array(2).fill(line('carol', 'pro', 'catch-all')),
      // A call of the API, which may name a tier for an unknown client.
      ...Array(2).fill(line('dave', 'pro', '')),
      line('bob', 'free', ''),
    ].join('\n')
    const tiers = async (...args: string[]) => {
      const { ruleSets } = await report(['--config', file, ...args], text)
      const { byTier } = ruleSets[0]
      return byTier.map(({ tier, requests, refused }) => [tier, requests, refused])
    }
    expect(await tiers()).toEqual([
      ['pro', 6, 2],
      ['free', 2, 1],
      ['override', 1, 0],
    ])
    expect(await tiers('--tier-field', 'tier')).toEqual([
      ['free', 4, 3],
      ['pro', 4, 0],
      ['override', 1, 0],
    ])
  })

  it('finds no change, and no delay, where a route stays in shadow mode', async () => {
    const file = join(folder, 'stays.yaml')
    const line = (route: string, outcome: string) =>
      JSON.stringify({ time: '2026-11-16T18:00:00Z', key: 'erin', route, outcome })
    const log = ['allowed', 'shadowed', 'shadowed'].map((outcome) => line('login', outcome))
    const changeOf = async (rules: string) => {
      await writeFile(file, yaml.replace('rules: 1/1h', rules))
      const { change, delayed } = (await report(['--config', file], log.join('\n'))).ruleSets[0]
      return { ...change, delayed }
    }
    const shadow = '\n    shadow: true'
    const none = { newlyRefused: 0, newlyAllowed: 0, stillRefused: 0, stillAllowed: 3, unknown: 0 }
    expect(await changeOf(`rules: 1/1h${shadow}`)).toEqual({ ...none, delayed: 0 })
    expect(await changeOf(`rules: 1/1h queue 1 leaky-bucket${shadow}`)).toMatchObject({
      delayed: 0,
    })
    expect(await changeOf('rules: 1/1h queue 1 leaky-bucket')).toMatchObject({ delayed: 1 })
    expect(await changeOf('rules: 1/1h')).toMatchObject({ newlyRefused: 2, stillAllowed: 1 })
  })

  it('reports how many refusals are on routes in shadow mode', async () => {
    const file = join(folder, 'shadow.yaml')
    await writeFile(file, yaml.replace('rules: 1/1h', 'rules: 1/1h\n    shadow: true'))
    const line = (route: string) =>
      JSON.stringify({ time: '2026-11-16T18:00:00Z', key: 'carol', route, outcome: 'allowed' })
    const text = [...Array(3).fill(line('login')), ...Array(2).fill(line(''))].join('\n')
    const { ruleSets } = await report(['--config', file], text)
    expect(ruleSets[0]).toMatchObject({ refused: 3, shadowed: 2 })
    const page = join(folder, 'shadow.html')
    const { output } = await run(['--config', file, '--html', page], text)
    const told = 'of these 2 (66.7 %) on routes in shadow mode, which refuse no request'
    expect(output).toContain(told)
    expect(await readFile(page, 'utf8')).toContain(told)
  })

  it('with mistakes is reported line by line, before the log is read', async () => {
    const file = join(folder, 'wrong.yaml')
    await writeFile(file, 'tiers:\n  free: many\n')
    const failed = run(['--config', file], new Error('not to be read'))
    await expect(failed).rejects.toThrow('has a problem')
  })
})

it('writes a page that escapes hostile keys and loads nothing', async () => {
  const key = `</td><script>alert(1)</script>"'&\u001b[31m`
  const text = Array(3)
    .fill(JSON.stringify({ ts: 1, key, tier: key }))
    .join('\n')
  const file = join(folder, 'report.html')
  const { output } = await run(['--rule', '1/1s', '--html', file], text)
  const page = await readFile(file, 'utf8')
  expect(page).toContain('&lt;script&gt;alert(1)')
  expect(page).not.toMatch(/<script|https?:/)
  expect(page).not.toContain('\u001b')
  expect(page).toContain("default-src 'none'")
  // The terminal gets no control characters either.
  expect(output).not.toContain('\u001b')
  expect(output).toContain('\\u{1b}[31m')
})

describe('a mistake', () => {
  it.each([
    [['--rule', 'much'], 'SLUICE_RULE_SYNTAX', 'cannot read the rule "much"'],
    [['--format', 'xml'], 'SLUICE_OPTION', '--format must be combined, json, csv or decisions'],
    [['--scenario', 'calm'], 'SLUICE_OPTION', '--scenario must be steady, bursty'],
    [['--scenario', 'zipf', 'a.log'], 'SLUICE_OPTION', '--scenario reads no log'],
    [['--scenario', 'zipf', '--format', 'csv'], 'SLUICE_OPTION', '--format is for logs'],
    [['--scenario', 'zipf', '--clients', '0'], 'SLUICE_OPTION', '--clients must be a whole number'],
    [
      ['--scenario', 'zipf', '--for', '10'],
      'SLUICE_OPTION',
      '--for must be a time from 1ms to 400d',
    ],
    [['--seed', '2'], 'SLUICE_OPTION', '--seed needs --scenario'],
    [['--key', 'cookie'], 'SLUICE_OPTION', '--key must be address or user'],
    [['--top', '-1'], 'SLUICE_OPTION', '--top must be a whole number from 0 to 1,000, got "-1"'],
    [
      ['--scenario', 'steady', '--rate', '1000000', '--for', '1h'],
      'SLUICE_OPTION',
      'the scenario has up to 3,600,000,000 requests, the maximum is 50,000,000. Lower --rate',
    ],
    [
      ['--scenario', 'retry-storm', '--rate', '10000'],
      'SLUICE_OPTION',
      'the scenario has up to 60,000,000 requests',
    ],
    [['/nowhere/access.log'], 'SLUICE_OPTION', 'cannot read "/nowhere/access.log": ENOENT'],
    [['--config', '/nowhere.yaml'], 'SLUICE_OPTION', 'cannot read "/nowhere.yaml": ENOENT'],
    [['--html', '/nowhere/a.html'], 'SLUICE_OPTION', 'cannot write "/nowhere/a.html": ENOENT'],
  ])('%j is reported', async (args, code, message) => {
    const failed = run(args, formats.combined)
    await expect(failed).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
  })

  it('of a key for JSON says how to name the field', () =>
    expect(run(['--key', 'user'], formats.json)).rejects.toThrow('Name the field: --key-field'))

  it('of a truncated gzip file is reported', () =>
    expect(run([], gzipSync(formats.combined).subarray(0, 40))).rejects.toThrow(
      'cannot read standard input: unexpected end of file',
    ))
})

it('does not read a log for a page that cannot be written', async () => {
  const failed = run(['--html', folder], new Error('not to be read'))
  await expect(failed).rejects.toThrow(/^cannot write .* EISDIR/)
})

it.runIf(process.platform === 'linux')(
  'gives the report also where the page fails at the end',
  async () => {
    // Can be opened for appending, but every write fails.
    const printed: string[] = []
    const failed = simulateCommand.run(['--html', '/dev/full'], {
      async *input() {
        yield Buffer.from(formats.combined)
      },
      inputIsTerminal: false,
      write: async (text) => void printed.push(text),
      note() {},
    })
    await expect(failed).rejects.toThrow('cannot write "/dev/full": ENOSPC')
    expect(printed.join('')).toContain('4 requests by 1 client\n')
  },
)

it('shows the progress of a scenario', async () => {
  const args = ['--scenario', 'steady', '--rate', '20000', '--for', '1m', '--rule', '1/1s']
  const { statuses } = await run(args)
  expect(statuses.at(-1)).toBe('')
  expect(statuses[0]).toMatch(/ % of 1,200,000 requests, [\d,.]+ requests\/s, about .* left$/)
})

it('shows its progress, and clears it at the end', async () => {
  const { statuses } = await run([], formats.combined)
  expect(statuses.at(-1)).toBe('')
})

it('explains itself with --help', async () => {
  const { output } = await run(['--help'])
  expect(output).toMatch(/^Usage: sluice simulate/)
  for (const line of output.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
})

it('identifies IPv6 clients by their network, as the gateway does', async () => {
  const log = ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1', '::ffff:192.0.2.1', '192.0.2.1']
  const { traffic, ruleSets } = await report(
    ['--rule', '1/1m'],
    log.map((address) => combined(0, address)).join('\n'),
  )
  expect(traffic).toMatchObject({ requests: 5, clients: 3 })
  expect(ruleSets[0]).toMatchObject({ allowed: 3, refused: 2 })
})
