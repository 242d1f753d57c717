import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { replayCommand } from './replay-command.ts'

const example = '3\n10\n4\nrequest a 0\nrequest a 0\nrequest a 0\nrequest a 0\n'
const answers = 'allow\nallow\nallow\ndeny\n'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-replay-'))
  await writeFile(join(folder, 'example.txt'), example)
})
afterAll(() => rm(folder, { recursive: true }))

/** Runs the command with these chunks as its standard input and returns what it printed. */
async function run(
  args: readonly string[],
  input: string | readonly Buffer[] | Error = '',
  inputIsTerminal = false,
) {
  const printed = { output: '', notes: [] as string[], opened: false }
  await replayCommand.run(args, {
    async *input() {
      printed.opened = true
      if (input instanceof Error) throw input
      yield* typeof input === 'string' ? [Buffer.from(input)] : input
    },
    inputIsTerminal,
    async write(text) {
      printed.output += text
    },
    note: (line) => void printed.notes.push(line),
  })
  return printed
}

describe('the input', () => {
  it('is standard input without a file, or with -', async () => {
    expect(await run([], example)).toMatchObject({ output: answers, notes: [] })
    expect(await run(['-'], example)).toMatchObject({ output: answers, notes: [] })
  })

  it('is the named file, and then standard input is not touched', async () => {
    const printed = await run([join(folder, 'example.txt')], 'unused', true)
    expect(printed).toEqual({ output: answers, notes: [], opened: false })
  })

  it('tells a person at a terminal what to type', async () => {
    const { notes, output } = await run([], example, true)
    expect(notes).toEqual([expect.stringMatching(/^Type capacity, window, count/)])
    expect(output).toBe(answers)
  })
})

describe('a mistake', () => {
  it('in a file name says which file cannot be read, and why', async () => {
    const missing = join(folder, 'missing.txt')
    const failed = expect(run([missing])).rejects
    await failed.toMatchObject({ code: 'SLUICE_OPTION', cause: { code: 'ENOENT' } })
    await expect(run([missing])).rejects.toThrow(`cannot read ${JSON.stringify(missing)}: ENOENT`)
  })

  it('in naming a folder is reported like a missing file', async () => {
    await expect(run([folder])).rejects.toThrow(/^cannot read .*EISDIR/)
  })

  it('of an unreadable standard input names it', async () => {
    await expect(run([], new Error('EIO'))).rejects.toThrow('cannot read standard input: EIO.')
  })

  it('of two files or an unknown option is refused before anything is read', async () => {
    await expect(run(['a', 'b'])).rejects.toThrow('replay reads one file, got 2.')
    await expect(run(['--fast'])).rejects.toThrow(
      "Unknown option '--fast'. Run sluice replay --help for the options.",
    )
  })
})

it.each(['--help', '-h'])('%s prints the help and an example that is true', async (flag) => {
  const { output, opened } = await run([flag], 'unused')
  expect(opened).toBe(false)
  expect(output).toMatch(/^Usage: sluice replay \[FILE\]\n/)
  const [, input, printed] = output.match(/\$ printf '(.*)' \| sluice replay\n(.*)$/s) ?? []
  const replayed = await run([], input.replaceAll('\\n', '\n'))
  expect(replayed.output).toBe(printed.replace(/^ {2}/gm, ''))
})

/** A second implementation of the format in bigints, which counts the branches it takes. */
function createOracle(
  capacity: bigint,
  window: bigint,
  seen: { allow: number; deny: number; partial: number },
) {
  const buckets: { client: string; tokens: bigint; last: bigint }[] = []
  return (client: string, now: bigint): 'allow' | 'deny' => {
    let bucket = buckets.find((candidate) => candidate.client === client)
    if (!bucket) {
      bucket = { client, tokens: capacity, last: now }
      buckets.push(bucket)
    }
    const elapsed = now - bucket.last
    const gained = elapsed > 0n && window > 0n ? (elapsed * capacity) / window : 0n
    if (gained > 0n && bucket.tokens + gained >= capacity) {
      bucket.tokens = capacity
      bucket.last = now
    } else if (gained > 0n) {
      bucket.tokens += gained
      bucket.last += (gained * window) / capacity
      seen.partial += 1
    }
    const answer = bucket.tokens > 0n ? 'allow' : 'deny'
    if (answer === 'allow') bucket.tokens -= 1n
    seen[answer] += 1
    return answer
  }
}

const small = fc.bigInt(0n, 12n)
const medium = fc.bigInt(8n, 60n)
const large = fc.oneof(fc.bigInt(2n ** 53n - 3n, 2n ** 53n + 3n), fc.bigInt(2n ** 60n, 2n ** 61n))
const hostile = fc.constantFrom('__proto__', 'constructor', '\0', '\xe9', '\xc3\xa9')
const request = fc.record({
  client: fc.oneof({ weight: 4, arbitrary: fc.constant('a') }, { weight: 1, arbitrary: hostile }),
  step: fc.oneof({ weight: 50, arbitrary: fc.bigInt(-1n, 3n) }, { weight: 1, arbitrary: large }),
  gap: fc.constantFrom(' ', '\t', ' \t '),
})
const skipped = fc.constantFrom('', ' ', '\t', 'status a 1', 'requests a 1', 'REQUEST')
const stream = fc.record({
  capacity: fc.oneof({ weight: 5, arbitrary: small }, { weight: 1, arbitrary: large }),
  window: fc.oneof(small, medium, medium, medium, large),
  start: fc.constantFrom(0n, -9n, 2n ** 53n - 20n, -(2n ** 53n) - 20n, 2n ** 60n),
  lines: fc.array(fc.oneof({ weight: 8, arbitrary: request }, { weight: 1, arbitrary: skipped }), {
    maxLength: 80,
    size: 'max',
  }),
  newline: fc.constantFrom('\n', '\r\n'),
  headerGap: fc.constantFrom(' ', '\n', '\n\n', '\t', '\r\n'),
  cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 }),
})

it('answers random streams as the arithmetic of the format does, however they are cut', async () => {
  const seen = { allow: 0, deny: 0, partial: 0 }
  const property = fc.asyncProperty(stream, async (s) => {
    const oracle = createOracle(s.capacity, s.window, seen)
    let now = s.start
    let expected = ''
    const rows = s.lines.map((row) => {
      if (typeof row === 'string') return row
      now += row.step
      expected += `${oracle(row.client, now)}\n`
      return `${row.gap}request${row.gap}${row.client}${row.gap}${now}`
    })
    const header = [s.capacity, s.window, rows.length].join(s.headerGap)
    const text = Buffer.from([header, ...rows, ''].join(s.newline), 'latin1')
    const cuts = s.cuts.map((part) => Math.floor(part * text.length)).sort((a, b) => a - b)
    const chunks = [...cuts, text.length].map((cut, i) => text.subarray(cuts[i - 1] ?? 0, cut))
    expect((await run([], chunks)).output).toBe(expected)
  })
  await fc.assert(property, { numRuns: 1000 })
  // The streams test something only if every branch is common in them.
  expect(Math.min(seen.allow, seen.deny, seen.partial)).toBeGreaterThan(1000)
})
