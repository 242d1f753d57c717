import { describe, expect, it } from 'vitest'
import {
  compactStore,
  createLimiter,
  createPolicy,
  defineAlgorithm,
  fixedWindow,
  type Limiter,
  memoryStore,
  type Rule,
  ruleFactory,
  tokenBucket,
} from '../index.ts'
import { sharedMemoryStore } from '../stores/shared-memory/shared-memory.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { seededRandom } from '../testing/random.ts'
import { ruleMakers } from '../testing/streams.ts'

const stores = [
  { name: 'memoryStore', make: memoryStore },
  { name: 'compactStore', make: compactStore },
  { name: 'sharedMemoryStore', make: sharedMemoryStore },
]

/** A user-defined window: a key that starts from the floor first waits a whole window. */
const startsLate = ruleFactory(
  defineAlgorithm({
    name: 'starts-late',
    cells: () => 2,
    waitUs(cells, at, rule, cost, nowUs) {
      const used = nowUs < cells[at] ? cells[at + 1] : 0
      return used + cost <= rule.limit ? 0 : cells[at] - nowUs
    },
    spend(cells, at, rule, cost, nowUs) {
      if (nowUs >= cells[at]) cells[at + 1] = 0
      if (cells[at + 1] === 0) cells[at] = nowUs + rule.perUs
      cells[at + 1] += cost
    },
    remaining: (cells, at, rule, nowUs) =>
      Math.max(0, rule.limit - (nowUs < cells[at] ? cells[at + 1] : 0)),
    freshAtUs: (cells, at) => (cells[at + 1] === 0 ? 0 : cells[at]),
    merge(cells, at, other, otherAt) {
      cells[at] = Math.max(cells[at], other[otherAt])
      cells[at + 1] = Math.max(cells[at + 1], other[otherAt + 1])
    },
    begin(cells, at, rule, nowUs) {
      cells[at] = nowUs + rule.perUs
      cells[at + 1] = rule.limit
    },
  }),
)

/**
 * Returns the answers of two limiters with the same rules, one through `allow`, one through
 * `check`.
 */
function answersOf(rules: readonly Rule[], maxKeys: number, seed: number) {
  const random = seededRandom(seed)
  const clocks = [manualClock(), manualClock()]
  const limiters = clocks.map((clock) =>
    createLimiter(rules, { store: memoryStore({ maxKeys, clock }) }),
  )
  const most = Math.min(...rules.map(({ capacity }) => capacity))
  const asked: string[] = []
  const answers: boolean[][] = [[], []]
  for (let step = 0; step < 400; step += 1) {
    const key = `key ${random.below(24)}`
    const cost = Math.min(most, random.pick([0, 1, 1, 1, 2, 5, most]))
    const gapMs = random.pick([0, 0, 1, 333, rules[0].perUs / 1_000])
    for (const clock of clocks) clock.advance(gapMs)
    asked.push(`${key} ${cost} after ${gapMs} ms`)
    answers[0].push(limiters[0].allow(key, cost))
    answers[1].push(limiters[1].check(key, cost).allowed)
  }
  return { asked, answers }
}

describe('allow', () => {
  it('answers and spends as check does, in stores with and without free rows', () => {
    const random = seededRandom(2_020)
    const made = Object.entries(ruleMakers).flatMap(([name, make]) =>
      name === 'leaky-bucket' ? [] : [() => make(random, name)],
    )
    const own = () => startsLate({ limit: random.pick([1, 3, 10]), per: '1s' })
    for (let round = 0; round < 150; round += 1) {
      const makers = [...made, own]
      const first = random.below(makers.length)
      const rules = [makers[first]()]
      if (round % 3 === 0) rules.push(makers[(first + 1) % makers.length]())
      const { asked, answers } = answersOf(rules, random.pick([4, 1_000]), round)
      const differs = answers[0].findIndex((answer, i) => answer !== answers[1][i])
      expect([differs, rules.map(({ text }) => text), asked[differs]]).toEqual([
        -1,
        rules.map(({ text }) => text),
        undefined,
      ])
    }
  })
})

describe.each(stores)('an algorithm that returns invalid waits, on $name', ({ make }) => {
  const odd = (wait: number, own: object = {}) => {
    const { algorithm } = tokenBucket({ limit: 5, per: '1s' })
    const waitUs = () => wait
    const twin = defineAlgorithm({ ...algorithm, name: 'odd', waitUs, take: undefined, ...own })
    return ruleFactory(twin)({ limit: 5, per: '1s' })
  }
  const ask = (rule: Rule, verb: (limiter: Limiter) => boolean) => {
    const limiter = createLimiter(rule, { store: make({ clock: manualClock() }) })
    const answers = [verb(limiter), verb(limiter)]
    return [...answers, limiter.peek('a', 0).remaining]
  }

  it('admits and spends if a wait is negative, with every verb', () => {
    expect(ask(odd(-7), (limiter) => limiter.allow('a'))).toEqual([true, true, 3])
    expect(ask(odd(-7), (limiter) => limiter.check('a').allowed)).toEqual([true, true, 3])
    const limiter = createLimiter(odd(-7), { store: make() })
    expect(limiter.check('a').retryAfterMs).toBe(0)
  })

  it('throws if a wait is NaN, and spends nothing', () => {
    const wrong = expect.objectContaining({ code: 'SLUICE_ALGORITHM' })
    for (const rules of [
      odd(Number.NaN),
      [odd(Number.NaN), fixedWindow({ limit: 5, per: '1s' })],
    ]) {
      const limiter = createLimiter(rules, { store: make({ clock: manualClock() }) })
      expect(() => limiter.allow('a')).toThrow(wrong)
      expect(() => limiter.check('a')).toThrow(wrong)
      expect(() => limiter.peek('a')).toThrow(wrong)
      expect(limiter.size()).toBe(0)
    }
  })
})

describe('entries', () => {
  it('list a key that was used with two algorithms under one rule name', () => {
    const policy = createPolicy({
      tiers: {
        free: tokenBucket({ limit: 5, per: '1m', name: 'rate' }),
        pro: fixedWindow({ limit: 50, per: '1m', name: 'rate' }),
      },
    })
    const limiter = createLimiter(policy, { clock: manualClock() })
    limiter.check('a', 2, { tier: 'free' })
    limiter.check('a', 3, { tier: 'pro' })
    const [{ key, decision }] = [...limiter.entries()]
    expect(key).toBe('a')
    expect(decision.rules.map(({ rule, remaining }) => [rule, remaining])).toEqual([
      ['rate', 3],
      ['rate', 47],
    ])
  })
})
