import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createReplay, replay } from '../index.ts'

const requests = (...timestamps: (number | bigint)[]) =>
  timestamps.map((timestamp) => ['request', 'a', String(timestamp)])

/** The format's arithmetic as specified, in BigInt only. */
function oracle(capacity: bigint, window: bigint, instructions: [string, bigint][]): string[] {
  const clients = new Map<string, { tokens: bigint; last: bigint }>()
  return instructions.map(([client, now]) => {
    const state = clients.get(client) ?? { tokens: capacity, last: now }
    clients.set(client, state)
    const elapsed = now - state.last
    const refill = window === 0n || elapsed <= 0n ? 0n : (elapsed * capacity) / window
    if (refill > 0n) {
      if (state.tokens + refill >= capacity) {
        state.tokens = capacity
        state.last = now
      } else {
        state.tokens += refill
        state.last += (refill * window) / capacity
      }
    }
    if (state.tokens === 0n) return 'deny'
    state.tokens -= 1n
    return 'allow'
  })
}

describe('replay', () => {
  it('plays the example of the format', () => {
    const [allow, deny] = ['allow', 'deny']
    expect(replay(3, 10, requests(0, 0, 0, 0, 10, 10, 10, 10))).toEqual([
      allow,
      allow,
      allow,
      deny,
      allow,
      allow,
      allow,
      deny,
    ])
  })

  it('equals the oracle on random streams, also far beyond 2^53', () => {
    const figure = fc.oneof(
      fc.bigInt(0n, 12n),
      fc.bigInt(0n, 10n ** 20n),
      fc.bigInt(2n ** 53n - 4n, 2n ** 53n + 4n),
    )
    const start = fc.constantFrom(0n, -(2n ** 53n), 2n ** 53n - 20n, 10n ** 25n)
    const steps = fc.array(
      fc.tuple(fc.constantFrom('a', 'b', '__proto__'), fc.oneof(fc.bigInt(-3n, 12n), figure)),
      { maxLength: 60 },
    )
    fc.assert(
      fc.property(figure, figure, start, steps, (capacity, window, from, moves) => {
        let now = from
        const list = moves.map(([client, move]): [string, bigint] => {
          now += move
          return [client, now]
        })
        const actual = replay(
          capacity,
          window,
          list.map(([client, at]) => ['request', client, String(at)]),
        )
        expect(actual).toEqual(oracle(capacity, window, list))
      }),
      { numRuns: 2_000 },
    )
  })

  it('equals the oracle one tick before and after each token refills', () => {
    const answers = { allow: 0, deny: 0 }
    const window = fc.oneof(
      fc.bigInt(1n, 40n),
      fc.bigInt(2n ** 49n, 2n ** 53n + 4n),
      fc.bigInt(1n, 10n ** 20n),
    )
    const start = fc.constantFrom(0n, 1_000n, -(2n ** 53n), 2n ** 53n - 20n)
    // Mostly no time passes, so that buckets run empty.
    const tokens = fc.constantFrom(0n, 0n, 0n, 0n, 1n, 1n, 2n, 3n)
    const moves = fc.array(fc.tuple(tokens, fc.bigInt(-1n, 1n)), { minLength: 60, maxLength: 60 })
    fc.assert(
      fc.property(fc.bigInt(1n, 12n), window, start, moves, (capacity, window, from, list) => {
        let now = from
        const timestamps = list.map(([back, offset]): [string, bigint] => {
          if (back > 0n) now += (back * window + capacity - 1n) / capacity + offset
          return ['a', now]
        })
        const actual = replay(capacity, window, requests(...timestamps.map(([, at]) => at)))
        expect(actual).toEqual(oracle(capacity, window, timestamps))
        for (const answer of actual) answers[answer] += 1
      }),
      { numRuns: 1_000 },
    )
    // A stream that never runs empty would prove nothing.
    expect(Math.min(answers.allow, answers.deny)).toBeGreaterThan(6_000)
  })

  it('is exact where a product exceeds 2^53', () => {
    // 2.999… tokens have refilled, which doubles round to three.
    const at = 5_404_319_552_844_582
    expect(replay(5, 9_007_199_254_740_971, requests(0, 0, 0, 0, 0, at, at, at))).toEqual([
      ...Array(7).fill('allow'),
      'deny',
    ])
  })

  it('always denies with capacity 0, and never refills with window 0', () => {
    expect(replay(0, 10, requests(0, 100))).toEqual(['deny', 'deny'])
    expect(replay(1, 0, requests(0, 100, 10n ** 30n))).toEqual(['allow', 'deny', 'deny'])
  })

  it('refills nothing when time stands still or steps back', () => {
    expect(replay(1, 10, requests(100, 0, 90, 109, 110))).toEqual([
      'allow',
      'deny',
      'deny',
      'deny',
      'allow',
    ])
  })

  it('skips other commands and empty instructions', () => {
    expect(
      replay(1, 1, [[], ['status', 'a'], ['request', 'a', '0'], ['REQUEST', 'a', '0']]),
    ).toEqual(['allow'])
  })

  it.each([
    [['request']],
    [['request', 'a']],
    [['request', 'a', '0', '0']],
    [['request', 'a', '1.0']],
    [['request', 'a', '']],
    [['request', 'a', '0x10']],
    [['request', 'a', '1e3']],
    [['request', 'a', ' 1']],
    [['request', 'a', 1 as never]],
  ])('refuses %j and names the instruction', (instruction) => {
    expect(() => replay(1, 1, [['request', 'a', '0'], instruction])).toThrow(
      expect.objectContaining({
        code: 'SLUICE_REPLAY',
        message: expect.stringMatching(/instruction 1/),
      }),
    )
  })

  it.each([undefined, null, 'request', [null], [5]])(
    'refuses %o in place of instructions',
    (list) => {
      expect(() => replay(1, 1, list as never)).toThrow(
        expect.objectContaining({ code: 'SLUICE_REPLAY' }),
      )
    },
  )

  it.each([-1, 1.5, Number.NaN, -1n, '3', null])('refuses the number %o', (figure) => {
    const bad = expect.objectContaining({ code: 'SLUICE_REPLAY' })
    expect(() => createReplay(figure as never, 1)).toThrow(bad)
    expect(() => createReplay(1, figure as never)).toThrow(bad)
  })
})
