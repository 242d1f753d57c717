import { describe, expect, it } from 'vitest'
import { verify } from '../bench/lib/adapter.mjs'
import { compete } from '../bench/lib/compete.mjs'
import { documentOf } from '../bench/lib/document.mjs'
import { jobsOf, timeLeftMs } from '../bench/lib/jobs.mjs'
import { parseOptions } from '../bench/lib/options.mjs'
import { isStale } from '../bench/lib/peers.mjs'
import { randomOf, uniform, zipf } from '../bench/lib/random.mjs'
import { reportOf } from '../bench/lib/report.mjs'
import { runWorker } from '../bench/lib/run-worker.mjs'
import { countRefused, longestStall, median, ratiosTo, spreadOf } from '../bench/lib/statistics.mjs'
import { summarize } from '../bench/lib/summary.mjs'
import { markdownTable, numberText, textTable } from '../bench/lib/table.mjs'
import { threadsReport } from '../bench/lib/threads.mjs'

const counter = (limit: number) => {
  const counts = new Map<string, number>()
  return (key: string) => {
    counts.set(key, (counts.get(key) ?? 0) + 1)
    return counts.get(key)! <= limit
  }
}

describe('the statistics of the benchmark', () => {
  it('take the median of values in any order', () => {
    expect(median([9, 1, 5])).toBe(5)
    expect(median([10, 9, 1, 2])).toBe(5.5)
    expect(median([100, 20, 3])).toBe(20)
    expect(spreadOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 })
    expect(spreadOf([])).toBeUndefined()
  })

  it('take ratios within a repetition, and leave out repetitions that only one of the two has', () => {
    const values = new Map([
      [1, 10],
      [2, 30],
      [3, 40],
    ])
    const reference = new Map([
      [1, 20],
      [2, 30],
      [4, 1],
    ])
    expect(ratiosTo(values, reference)).toEqual({ median: 0.75, min: 0.5, max: 1 })
    expect(ratiosTo(values, new Map())).toBeUndefined()
  })

  it('measure a stall against the median slice', () => {
    expect(longestStall([1, 2, 1, 42, 2])).toBe(40)
  })

  it('count the refusals of an exact limiter after earlier calls', () => {
    const order = Uint32Array.from([0, 0, 1, 0, 0, 1])
    expect(countRefused(order, 0, 6, { keys: 2, limit: 2, before: 0 })).toBe(2)
    expect(countRefused(order, 3, 6, { keys: 2, limit: 2, before: 1 })).toBe(3)
    expect(countRefused(order, 0, 6, { keys: 2, limit: 9, before: 1 })).toBe(0)
  })
})

describe('the random numbers of the benchmark', () => {
  it('are the same for the same seed, and uniform', () => {
    expect(uniform(1_000, 50, randomOf(7))).toEqual(uniform(1_000, 50, randomOf(7)))
    expect(uniform(1_000, 50, randomOf(7))).not.toEqual(uniform(1_000, 50, randomOf(8)))
    const counts = new Uint32Array(10)
    for (const n of uniform(10, 100_000, randomOf(1))) counts[n] += 1
    expect(Math.min(...counts)).toBeGreaterThan(9_500)
    expect(Math.max(...counts)).toBeLessThan(10_500)
  })

  it('follow Zipf: the k-th most popular comes 1 / k times as often as the first', () => {
    const counts = new Uint32Array(1_000)
    for (const n of zipf(1_000, 200_000, randomOf(1))) counts[n] += 1
    const [first, second, third] = [...counts].sort((a, b) => b - a)
    expect(first / second).toBeCloseTo(2, 0)
    expect(first / third).toBeCloseTo(3, 0)
    expect(counts.every((count) => count > 0)).toBe(true)
    expect(counts[0]).toBe(first)
    expect(counts[7_919 % 1_000]).toBe(second)
  })
})

describe('the tables of the benchmark', () => {
  it('are aligned as text', () => {
    expect(
      textTable(
        ['', 'ns'],
        [
          ['a', '1'],
          ['long', '1,000'],
        ],
      ),
    ).toBe('         ns\n----  -----\na         1\nlong  1,000\n')
  })

  it('are written as Markdown', () => {
    expect(markdownTable(['', 'ns'], [['a|b', '1']])).toBe('|  | ns |\n|---|---:|\n| a\\|b | 1 |\n')
  })

  it.each([
    [0.256, '0.26'],
    [12.34, '12.3'],
    [123.4, '123'],
    [12_345.6, '12,346'],
    [0, '0.00'],
    [-0.001, '0.00'],
  ])('show %d as %s', (value, text) => expect(numberText(value)).toBe(text))
})

describe('the order of a benchmark', () => {
  const names = ['a', 'b', 'c'].map((name) => ({ name }))

  it('takes all contestants in turn, and starts each repetition with another one', () => {
    const order = jobsOf(names, ['hot', '1M'], 2).map(
      ({ contestant, workload, repetition }) => `${repetition} ${workload} ${contestant.name}`,
    )
    expect(order.slice(0, 6)).toEqual('1 hot a,1 hot b,1 hot c,1 1M a,1 1M b,1 1M c'.split(','))
    expect(order.slice(6)).toEqual('2 hot b,2 hot c,2 hot a,2 1M b,2 1M c,2 1M a'.split(','))
  })

  it('leaves out what a contestant does not run', () => {
    const jobs = jobsOf([{ name: 'a', except: ['hot'] }, { name: 'b' }], ['hot', '1M'], 1)
    expect(jobs.map(({ contestant, workload }) => contestant.name + workload)).toEqual([
      'bhot',
      'a1M',
      'b1M',
    ])
  })

  it('estimates the time left from finished jobs, or else from its guesses', () => {
    const done = [
      { key: 'a', guess: 1, ms: 300 },
      { key: 'b', guess: 2, ms: 300 },
    ]
    expect(timeLeftMs([{ key: 'a', guess: 1 }], [])).toBeUndefined()
    expect(
      timeLeftMs(
        [
          { key: 'a', guess: 1 },
          { key: 'c', guess: 4 },
        ],
        done,
      ),
    ).toBe(300 + 800)
  })
})

describe('the command line of the benchmark', () => {
  const parse = (...args: string[]) => parseOptions(args, ['a', 'b', 'c'], ['hot', '1M'])

  it('runs everything five times unless told otherwise', () => {
    expect(parse()).toMatchObject({ contestants: ['a', 'b', 'c'], repetitions: 5, quick: false })
    expect(parse('--quick')).toMatchObject({ repetitions: 3, quick: true })
    expect(parse('--only', 'c,a', '--workloads', '1M', '--repetitions', '9')).toMatchObject({
      contestants: ['a', 'c'],
      workloads: ['1M'],
      repetitions: 9,
    })
  })

  it('rejects unknown names', () => {
    expect(() => parse('--only', 'd')).toThrow('--only d: no such name. There are: a, b, c.')
    expect(() => parse('--repetitions', 'many')).toThrow('--repetitions many: must be a whole')
  })

  it('installs the peers again when a version changed or a package is missing', () => {
    const wanted = {
      packages: { '': {}, x: { version: '1' }, y: { version: '2', optional: true } },
    }
    expect(isStale(wanted, { packages: { x: { version: '1' } } })).toBe(false)
    expect(isStale(wanted, { packages: { x: { version: '2' } } })).toBe(true)
    expect(isStale(wanted, { packages: { y: { version: '2' } } })).toBe(true)
  })
})

describe('verifying a contestant', () => {
  it('accepts one that limits, synchronous or asynchronous', async () => {
    expect(await verify(counter)).toBeUndefined()
    const later = (limit: number) => {
      const decide = counter(limit)
      return { ask: async (key: string) => decide(key), passes: (answer: boolean) => answer }
    }
    expect(await verify(later)).toBeUndefined()
    const rejecting = (limit: number) => {
      const decide = counter(limit)
      const ask = (key: string) => (decide(key) ? Promise.resolve() : Promise.reject({ left: 0 }))
      return { ask, passes: () => true }
    }
    expect(await verify(rejecting)).toBeUndefined()
  })

  it('finds one that admits everything, one that admits too little, and one that is broken', async () => {
    expect(await verify(() => () => true)).toBe('call 8 of a key with limit 7 was allowed')
    expect(await verify((limit) => counter(limit - 1))).toBe(
      'call 7 of a key with limit 7 was refused',
    )
    const shared = (limit: number) => {
      const decide = counter(limit)
      return () => decide('')
    }
    expect(await verify(shared)).toBe('call 1 of a key with limit 7 was refused')
    const broken = () => ({ ask: () => Promise.reject(new Error('no store')), passes: () => true })
    await expect(verify(broken)).rejects.toThrow('no store')
  })
})

describe('a benchmark with a contestant that admits everything', () => {
  const liar = {
    name: 'liar',
    label: 'the liar',
    group: 'peer' as const,
    module: new URL('./fixtures/lying-contestant.mjs', import.meta.url).href,
  }
  const floor = {
    name: 'floor',
    label: 'the floor',
    group: 'baseline' as const,
    decides: false as const,
    module: new URL('../bench/contestants/floor.mjs', import.meta.url).href,
  }
  const plan = { workloads: ['hot-refused'], repetitions: 1, quick: true }

  it('reports it as failed, without results', async () => {
    const said: string[] = []
    const contestants = [liar, floor]
    const { entrants, records } = await compete({ ...plan, contestants }, (line) => said.push(line))
    expect(said[0]).toBe('liar: failed: call 8 of a key with limit 7 was allowed')
    expect(records.map(({ contestant }) => contestant)).toEqual(['floor'])
    const { rows, bestPeer } = summarize('hot-refused', entrants, records)
    expect(rows.map(({ entrant, failed }) => [entrant.name, failed])).toEqual([
      ['floor', undefined],
      ['liar', 'call 8 of a key with limit 7 was allowed'],
    ])
    expect(rows[0].ns!.median).toBeGreaterThan(0)
    expect(bestPeer).toBeUndefined()

    const run = {
      ...{ ...plan, entrants, records, startedAt: '2026-01-02T03:04:05Z', seconds: 60 },
      machine: {
        node: '20.19.0',
        v8: '',
        platform: '',
        arch: 'x64',
        cpu: '',
        cores: 2,
        memoryGb: 8,
      },
      load: { before: [0, 0, 0], after: [0, 0, 0] },
      versions: { sluice: '0.1.0' },
    }
    const [{ text }] = reportOf(run, textTable)
    expect(text).toContain('the liar failed: call 8 of a key with limit 7 was allowed.')
    expect(documentOf(run)).toContain('the liar failed: call 8 of a key with limit 7 was allowed.')
  })

  it('detects it by its refusals, even if it passed verification', async () => {
    const job = {
      module: liar.module,
      contestant: 'liar',
      repetition: 1,
      quick: true,
      decides: true,
    }
    const { failed } = await runWorker({ ...job, workload: 'hot-refused' })
    expect(failed).toMatch(/^refused 0 of \d+ calls, \d+ would be right$/)
  })

  it('reports a process that could not start', async () => {
    const missing = { module: `${liar.module}.gone`, contestant: 'x', repetition: 1 }
    const { failed } = await runWorker({ ...missing, quick: true, decides: true })
    expect(failed).toContain('lying-contestant.mjs.gone')
  })
})

describe('the report on threads', () => {
  it('takes ratios within a repetition', () => {
    const sample = (way: string, threads: number, repetition: number, perSecond: number) => ({
      way,
      threads,
      repetition,
      perSecond,
    })
    const { about, text } = threadsReport(
      [
        sample('shared', 1, 1, 4_000_000),
        sample('shared', 1, 2, 2_000_000),
        sample('unshared', 1, 1, 6_000_000),
        sample('unshared', 1, 2, 4_000_000),
        sample('shared', 2, 1, 7_200_000),
        sample('shared', 2, 2, 3_200_000),
      ],
      textTable,
    )
    expect(about).toContain('times that of compactStore, one thread: 1.75 (1.50 – 2.00).')
    expect(about).toContain('Two threads on sharedMemoryStore, times one: 1.70 (1.60 – 1.80).')
    expect(text).toMatch(/sluice sharedMemoryStore +3,000 +2,000 – 4,000 +5,200/)
  })
})
