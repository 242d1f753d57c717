import fc from 'fast-check'
import { manualClock } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { createTopKeys, joinTop, type TopKeys } from './top-keys.ts'

const HOUR_MS = 3_600_000
const about = { route: 'search', tier: 'free', rule: 'burst' }

/** One step: the key, its units, and the hours that pass before. */
type Step = readonly [key: string, units: number, hours: number]
type Make = (
  capacity: number,
  clock: ReturnType<typeof manualClock>,
) => Pick<TopKeys, 'count' | 'top'>

const real: Make = (capacity, clock) => createTopKeys({ capacity, clock })

/** A broken twin with the most common mistake: a new key does not inherit the least count. */
const forgetful: Make = (capacity) => {
  const counts = new Map<string, number>()
  return {
    count(key, units = 1) {
      if (!counts.has(key) && counts.size === capacity) {
        counts.delete([...counts].sort((a, b) => a[1] - b[1])[0][0])
      }
      counts.set(key, (counts.get(key) ?? 0) + units)
    },
    top: () =>
      [...counts].map(([key, count]) => ({
        ...about,
        key,
        count,
        shadowed: 0,
        error: 0,
        lastMs: 0,
      })),
  }
}

/** Plays the steps on a sketch and on a Map, and returns the first guarantee that is violated. */
function brokenPromise(make: Make, capacity: number, steps: readonly Step[]): string | undefined {
  const clock = manualClock()
  const sketch = make(capacity, clock)
  const truth = new Map<string, number>()
  let total = 0
  for (const [key, units, hours] of steps) {
    clock.advance(hours * HOUR_MS)
    for (const [known, count] of truth) truth.set(known, count / 2 ** hours)
    truth.set(key, (truth.get(key) ?? 0) + units)
    total = total / 2 ** hours + units
    sketch.count(key, units)
  }
  const shown = sketch.top(Number.POSITIVE_INFINITY)
  if (shown.length > capacity) return `${shown.length} counters`
  for (const { key, count, error } of shown) {
    const real = truth.get(key) ?? 0
    if (real > count) return `${key} counts ${count}, below ${real}`
    if (count > real + error) return `${key} counts ${count}, above ${real} + ${error}`
    if (error > total / capacity) return `${key} has an error of ${error}`
  }
  const keys = new Set(shown.map(({ key }) => key))
  for (const [key, real] of truth) {
    if (real > Math.max(total / capacity, 0.5) && !keys.has(key)) return `${key} is missing`
  }
  return undefined
}

// After 40 halvings fractions would no longer fit a double beside the whole counts.
const randomSteps = fc
  .array(
    fc.tuple(
      fc.oneof(fc.constantFrom('a', 'b', 'c', '__proto__'), fc.string({ unit: 'binary' })),
      fc.integer({ min: 1, max: 9 }),
      fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 3 })),
    ),
    { maxLength: 200 },
  )
  .filter((steps) => steps.reduce((sum, [, , hours]) => sum + hours, 0) <= 40)

/** Key k comes up in proportion to 1 / k, roughly: the exponential of an even draw. */
const zipfSteps = fc
  .array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 500, maxLength: 2_000 })
  .map((draws) => draws.map((u): Step => [`key-${Math.floor(1_000 ** u)}`, 1, 0]))

const promise = (make: Make, steps: fc.Arbitrary<Step[]>) =>
  fc.property(fc.integer({ min: 1, max: 40 }), steps, (capacity, each) => {
    const broken = brokenPromise(make, capacity, each)
    if (broken) throw new Error(broken)
  })

describe('createTopKeys', () => {
  it('is exact while there are no more keys than counters', () => {
    const clock = manualClock()
    const keys = createTopKeys({ capacity: 3, clock })
    keys.count('b', 1, about)
    keys.count('a', 5, { ...about, rule: 'daily' })
    keys.count('b')
    clock.advance(7)
    keys.count('c', 1, about)
    const startMs = clock.nowUs() / 1_000 - 7
    expect(keys.top(10)).toEqual([
      { key: 'a', count: 5, shadowed: 0, error: 0, ...about, rule: 'daily', lastMs: startMs },
      { key: 'b', count: 2, shadowed: 0, error: 0, ...about, lastMs: startMs },
      { key: 'c', count: 1, shadowed: 0, error: 0, ...about, lastMs: startMs + 7 },
    ])
    expect(keys.top(1).map(({ key }) => key)).toEqual(['a'])
    expect(keys.top(0)).toEqual([])
  })

  it('separates refusals in shadow mode, and lists enforced ones first', () => {
    const clock = manualClock()
    const keys = createTopKeys({ clock })
    keys.count('shadow', 9, about, true)
    keys.count('both', 2, about)
    keys.count('both', 4, about, true)
    keys.count('refused', 3, about)
    const shown = () => keys.top(9).map(({ key, count, shadowed }) => [key, count, shadowed])
    const all = [
      ['refused', 3, 0],
      ['both', 6, 4],
      ['shadow', 9, 9],
    ]
    expect(shown()).toEqual(all)
    expect(joinTop([keys.top(9), keys.top(9)], 1)).toMatchObject([{ key: 'refused', count: 6 }])
    clock.advance(HOUR_MS)
    expect(shown()[1]).toEqual(['both', 3, 2])
  })

  it('gives the least counter to a newcomer, with what it may have missed as the error', () => {
    const clock = manualClock()
    const keys = createTopKeys({ capacity: 2, clock })
    keys.count('a', 9, about)
    keys.count('b', 3, about)
    keys.count('c', 2)
    expect(keys.top(2)).toMatchObject([
      { key: 'a', count: 9, error: 0 },
      { key: 'c', count: 5, error: 3, route: '', tier: '', rule: '' },
    ])
    clock.advance(HOUR_MS)
    expect(keys.top(2)[1]).toMatchObject({ key: 'c', count: 2.5, error: 1.5 })
  })

  it('keeps its guarantee on random streams, also while hours pass', () => {
    fc.assert(promise(real, randomSteps), { numRuns: 500 })
  })

  it('keeps its guarantee on zipf streams', () => {
    fc.assert(promise(real, zipfSteps), { numRuns: 50 })
  })

  it('has a guarantee that a broken twin violates', () => {
    expect(fc.check(promise(forgetful, zipfSteps)).failed).toBe(true)
    expect(fc.check(promise(forgetful, randomSteps)).failed).toBe(true)
  })

  it('stays small under a million rotating keys, and still finds the top key', () => {
    const keys = createTopKeys({ capacity: 1_000, clock: manualClock() })
    let largest = 0
    for (let i = 0; i < 1_000_000; i++) {
      keys.count(`rotating-${i}`)
      if (i % 500 === 0) keys.count('offender', 2)
      largest = Math.max(largest, keys.size())
    }
    expect(largest).toBe(1_000)
    expect(keys.top(1)).toMatchObject([{ key: 'offender' }])
    expect(keys.top(1)[0].count).toBeGreaterThanOrEqual(4_000)
  })

  it('halves on the full hour, and stops listing counts below a half', () => {
    const clock = manualClock()
    clock.advance(HOUR_MS - ((clock.nowUs() / 1_000) % HOUR_MS))
    const keys = createTopKeys({ clock })
    keys.count('a', 2, about)
    clock.advance(HOUR_MS - 0.001)
    expect(keys.top(1)[0].count).toBe(2)
    clock.advance(0.001)
    expect(keys.top(1)[0].count).toBe(1)
    clock.advance(HOUR_MS)
    expect(keys.top(1)[0].count).toBe(0.5)
    clock.advance(HOUR_MS)
    expect(keys.top(1)).toEqual([])
    keys.count('a')
    expect(keys.top(1)[0].count).toBe(1.25)
    clock.advance(10_000 * HOUR_MS)
    expect(keys.top(1)).toEqual([])
  })

  it('tells hostile keys apart up to 1,024 characters, and cuts longer ones', () => {
    const keys = createTopKeys({ clock: manualClock() })
    const long = '\ud83d\ude00'.repeat(512)
    const all = [
      '\ud800',
      '\udc00',
      '\ufffd',
      '__proto__',
      'constructor',
      '\0',
      'é',
      'e\u0301',
      long,
    ]
    for (const key of all) keys.count(key)
    keys.count(`${long}more`)
    const shown = keys.top(100)
    expect(new Set(shown.map(({ key }) => key))).toEqual(new Set(all))
    expect(shown[0]).toMatchObject({ key: long, count: 2 })
  })

  it('counts nothing for units that are not above 0', () => {
    const keys = createTopKeys({ clock: manualClock() })
    for (const units of [0, -1, Number.NaN]) keys.count('a', units)
    expect(keys.size()).toBe(0)
  })

  it('starts again after clear', () => {
    const keys = createTopKeys({ capacity: 1, clock: manualClock() })
    keys.count('a', 5)
    keys.clear()
    expect(keys.size()).toBe(0)
    keys.count('b')
    expect(keys.top(2)).toMatchObject([{ key: 'b', count: 1, error: 0 }])
  })

  it.each([0, -1, 1.5, Number.NaN, 1_000_001])('refuses a capacity of %s', (capacity) => {
    expect(() => createTopKeys({ capacity })).toThrow(/capacity must be a whole number/)
  })
})

describe('joinTop', () => {
  it('adds up the counts of several processes, and keeps the latest details', () => {
    const clock = manualClock()
    const [one, two] = [createTopKeys({ clock }), createTopKeys({ clock })]
    one.count('alice', 3, about)
    one.count('bob', 4, about)
    clock.advance(1_000)
    two.count('alice', 2, { ...about, route: 'later' })
    two.count('carol', 1, about)
    const told = joinTop([one.top(10), two.top(10)], 2)
    expect(told.map(({ key, count, route }) => [key, count, route])).toEqual([
      ['alice', 5, 'later'],
      ['bob', 4, 'search'],
    ])
  })
})
