import { concurrency } from '../algorithms/concurrency.ts'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import type { NoPermit, Permit } from '../limiter/permit.ts'
import { equal } from './equal.ts'
import { limiterOn } from './limiter-on.ts'
import type { MadeStore, StoreCase } from './store-suite.ts'

/**
 * Three units at once, each for up to 8 s: slots of 2 s, one of which begins at the clock's start.
 */
const three = concurrency({ limit: 3, hold: '8s' })

/**
 * At `atMs` after the start, a verb with its units or with the index of a permit, in the order in
 * which permits were given → the answer; the remaining units; and when one unit comes back, or
 * after a refusal all requested units.
 */
type HoldLine = readonly [
  atMs: number,
  verb: 'acquire' | 'release' | 'cancel' | 'extend' | 'reset' | 'clear',
  n: number,
  answer: boolean | undefined,
  remaining: number,
  retryAfterMs: number,
]

interface HoldTrace {
  readonly name: string
  readonly lines: readonly HoldLine[]
}

const traces: readonly HoldTrace[] = [
  {
    name: 'returns units between hold and 1.25 · hold',
    lines: [
      [0, 'acquire', 1, true, 2, 0],
      [1_999.999, 'acquire', 1, true, 1, 0],
      [2_000, 'acquire', 1, true, 0, 0],
      [2_000, 'acquire', 1, false, 0, 8_000],
      [9_999.999, 'acquire', 1, false, 0, 0.001],
      [10_000, 'acquire', 3, false, 2, 2_000],
      [10_000, 'acquire', 2, true, 0, 0],
      [11_999.999, 'acquire', 1, false, 0, 0.001],
      [12_000, 'acquire', 1, true, 0, 0],
    ],
  },
  {
    name: 'reports the end of the hold that frees enough, not of the first one',
    lines: [
      [0, 'acquire', 1, true, 2, 0],
      [2_000, 'acquire', 1, true, 1, 0],
      [4_000, 'acquire', 1, true, 0, 0],
      [4_000, 'acquire', 1, false, 0, 6_000],
      [4_000, 'acquire', 2, false, 0, 8_000],
      [4_000, 'acquire', 3, false, 0, 10_000],
    ],
  },
  {
    name: 'ends a permit once, even if it is released again',
    lines: [
      [0, 'acquire', 1, true, 2, 0],
      [0, 'acquire', 2, true, 0, 0],
      [1_000, 'release', 0, undefined, 1, 0],
      [1_000, 'release', 0, undefined, 1, 0],
      [1_000, 'cancel', 0, undefined, 1, 0],
      [1_000, 'extend', 0, false, 1, 0],
      [1_000, 'release', 1, undefined, 3, 0],
    ],
  },
  {
    name: 'restarts a hold that has not ended',
    lines: [
      [0, 'acquire', 3, true, 0, 0],
      [7_000, 'extend', 0, true, 0, 9_000],
      [10_000, 'acquire', 1, false, 0, 6_000],
      [15_999.999, 'extend', 0, true, 0, 8_000.001],
      [23_999.999, 'acquire', 1, false, 0, 0.001],
      [24_000, 'extend', 0, false, 3, 0],
      [24_000, 'release', 0, undefined, 3, 0],
    ],
  },
  {
    name: 'frees no other units when an expired permit is released',
    lines: [
      [0, 'acquire', 3, true, 0, 0],
      [10_000, 'acquire', 3, true, 0, 0],
      [10_000, 'release', 0, undefined, 0, 10_000],
      [11_000, 'extend', 0, false, 0, 9_000],
      [12_000, 'release', 1, undefined, 3, 0],
    ],
  },
  {
    name: 'frees no other units when a permit from before a reset is released',
    lines: [
      [0, 'acquire', 2, true, 1, 0],
      [0, 'reset', 0, undefined, 3, 0],
      [0, 'acquire', 3, true, 0, 0],
      [0, 'release', 0, undefined, 0, 10_000],
      [0, 'acquire', 1, false, 0, 10_000],
      [0, 'release', 1, undefined, 3, 0],
    ],
  },
  {
    name: 'holds nothing for a permit of 0 units',
    lines: [
      [0, 'acquire', 0, true, 3, 0],
      [0, 'release', 0, undefined, 3, 0],
      [0, 'acquire', 3, true, 0, 0],
      [0, 'acquire', 0, true, 0, 0],
      [0, 'release', 2, undefined, 0, 10_000],
    ],
  },
]

const clearTrace: HoldTrace = {
  name: 'frees no other units when a permit from before a clear is released',
  lines: [
    [0, 'acquire', 2, true, 1, 0],
    [0, 'clear', 0, undefined, 3, 0],
    [0, 'acquire', 3, true, 0, 0],
    [0, 'release', 0, undefined, 0, 10_000],
  ],
}

async function play({ store, clock }: MadeStore, { lines }: HoldTrace): Promise<void> {
  const limiter = limiterOn(three, { store, name: 'holds' })
  const startUs = clock.nowUs()
  const permits: Permit[] = []
  for (const [i, [atMs, verb, n, answer, remaining, retryAfterMs]] of lines.entries()) {
    clock.advance(atMs - (clock.nowUs() - startUs) / 1_000)
    const label = `line ${i}: at ${atMs} ms ${verb} ${n}`
    if (verb === 'acquire') {
      const permit: Permit | NoPermit = await limiter.tryAcquire('key', n)
      const { allowed, decision } = permit
      const seen = [allowed, decision.allowed, decision.remaining, decision.retryAfterMs]
      equal(seen, [answer, answer, remaining, retryAfterMs], label)
      if (allowed) permits.push(permit)
      continue
    }
    if (verb === 'reset' || verb === 'clear') await limiter[verb]('key')
    else equal(await permits[n][verb](), answer, label)
    const peeked = await limiter.peek('key')
    equal([peeked.remaining, peeked.retryAfterMs], [remaining, retryAfterMs], label)
  }
}

/** holdCases check concurrency by hand-written traces, and the verbs of permits. */
export function holdCases(clears: boolean): StoreCase[] {
  return [...traces, ...(clears ? [clearTrace] : [])]
    .map(
      (trace): StoreCase => ({
        name: `concurrency ${trace.name}`,
        run: (made) => play(made, trace),
      }),
    )
    .concat(permitCases)
}

const permitCases: readonly StoreCase[] = [
  {
    name: 'a cost per rule spends from each its own, and the decision names the scarcest rule',
    async run({ store }) {
      const requests = tokenBucket({ limit: 3, per: '3s', name: 'requests' })
      const tokens = fixedWindow({ limit: 1_000, per: '1m', name: 'tokens' })
      const limiter = limiterOn([requests, tokens], { store, name: 'costs' })
      const first = await limiter.check('a', { requests: 1, tokens: 900 })
      equal([first.rule, first.capacity, first.remaining], ['tokens', 1_000, 100], 'admitted')
      const refused = await limiter.check('a', { requests: 1, tokens: 101 })
      equal([refused.allowed, refused.rule, refused.remaining], [false, 'tokens', 100], 'refused')
      equal(
        refused.rules.map((rule) => rule.remaining),
        [2, 100],
        'nothing was charged',
      )
      const last = await limiter.check('a', { requests: 2, tokens: 0 })
      equal([last.allowed, last.rule, last.remaining], [true, 'requests', 0], 'no tokens')
    },
  },
  {
    name: 'a settled or cancelled permit refunds units that its window still counts',
    async run({ store, clock }) {
      const rate = fixedWindow({ limit: 10, per: '10s', name: 'rate' })
      const limiter = limiterOn([rate, three], { store, name: 'settle' })
      const left = async () => (await limiter.peek('a')).rules.map((rule) => rule.remaining)
      const [settled, cancelled, late] = await Promise.all(
        [1, 1, 1].map(async () => (await limiter.tryAcquire('a')) as Permit),
      )
      equal(await left(), [7, 0], 'taken')
      await settled.settle(4)
      equal(await left(), [4, 1], 'settled for more')
      await cancelled.cancel()
      equal(await left(), [5, 2], 'cancelled')
      clock.advance(10_000)
      await limiter.tryAcquire('a', { rate: 5, concurrency: 0 })
      await late.cancel()
      equal(await left(), [5, 3], 'cancelled when its window has closed')
    },
  },
  {
    name: 'acquire serves callers by priority, then in order of arrival',
    async run({ store, clock }) {
      const one = concurrency({ limit: 1, hold: '1h' })
      const limiter = limiterOn(one, { store, name: 'line' })
      const first = (await limiter.tryAcquire('a')) as Permit
      const order: string[] = []
      const callers = ['a 0', 'b 0', 'c 5', 'd 5', 'e 0', 'f -1']
      const served = callers.map(async (caller) => {
        const priority = Number(caller.slice(2))
        const permit = await limiter.acquire('a', 1, { priority, maxWaitMs: '1h' })
        order.push(caller)
        await permit.release()
      })
      equal(limiter.waiting('a'), callers.length, 'waiting')
      await first.release()
      // Enough turns of the event loop for stores with slow round trips.
      for (let i = 0; i < 5_000 && order.length < callers.length; i += 1) {
        await new Promise((resolve) => setTimeout(resolve, 0))
        clock.advance(100)
      }
      equal(order, ['c 5', 'd 5', 'a 0', 'b 0', 'e 0', 'f -1'], 'order')
      await Promise.all(served)
    },
  },
]
