import { equal } from './equal.ts'
import { limiterOn } from './limiter-on.ts'
import type { MadeStore } from './store-suite.ts'
import type { Trace } from './trace.ts'

/** playTrace plays a trace on a store, and throws if a line differs. */
export async function playTrace({ store, clock }: MadeStore, trace: Trace): Promise<void> {
  const limiter = limiterOn(trace.rule, { store })
  const startUs = trace.start ? Date.parse(trace.start) * 1_000 : clock.nowUs()
  for (const [
    i,
    [atMs, cost, allowed, remaining, retryAfterMs, delayMs = 0],
  ] of trace.lines.entries()) {
    clock.advance((startUs + Math.round(atMs * 1_000) - clock.nowUs()) / 1_000)
    const label = `line ${i}: at ${atMs} ms, cost ${cost}`
    const peeked = await limiter.peek('key', cost)
    const decision = await limiter.check('key', cost)
    const { allowed: a, remaining: r, retryAfterMs: w, delayMs: d } = decision
    equal([a, r, w, d], [allowed, remaining, retryAfterMs, delayMs], label)
    equal(
      [peeked.allowed, peeked.retryAfterMs, peeked.delayMs],
      [allowed, retryAfterMs, delayMs],
      `${label}: peek`,
    )
  }
}
