import type { Clock } from '../core/clock.ts'
import { costsAny } from '../core/cost.ts'
import type { Decision } from '../core/decision.ts'
import type { AsyncTable, Verb } from '../stores/store.ts'
import { createAsking, unavailable } from './asking.ts'
import type { CompleteFailure } from './failure-options.ts'
import { counts, createHolding, type Holding } from './holding.ts'
import { createLocal } from './local.ts'
import type { Asked, KeyTexts, Wanted } from './pending.ts'
import { createTimeLimit } from './time-limit.ts'

/** Keys per page of `look`. */
const LOOKED_AT = 128

/**
 * FailureMode wraps an asynchronous table so that decisions never fail and never exceed the timeout,
 * even while the store is down. Administrative calls reject instead of pretending success.
 */
export interface FailureMode extends Holding, Pick<AsyncTable, 'clear' | 'keys'> {
  /** `isCounted` tells whether a refusal counts towards the penalty. Default true. */
  decide(call: Asked, spend: boolean, isCounted?: boolean): Promise<Decision>
  decideAll(all: readonly Asked[]): Promise<Decision[]>
  /** Peeks in the store itself, for display. Rejects while the store is down. */
  look(all: readonly Asked[]): Promise<Decision[]>
  charge(call: Asked): Promise<void>
  refund(call: Asked): Promise<void>
  /** Blocks a key for `us` microseconds. */
  block(key: KeyTexts, us: number): Promise<void>
  unblock(key: KeyTexts): Promise<void>
  reset(key: KeyTexts): Promise<void>
  close(): Promise<void>
}

/** createFailureMode creates the failure mode of one limiter. */
export function createFailureMode(
  table: AsyncTable,
  clock: Clock,
  options: CompleteFailure,
  fields?: readonly string[],
): FailureMode {
  const limit = createTimeLimit(options.timeoutMs)
  const local = createLocal(clock, options.fleetSize, fields)
  const asking = createAsking(table, options, local, limit)
  const holding = createHolding(asking, local, options.timeoutMs)
  const noRules = table.use([])

  function decide(
    { set, key, fields, cost }: Asked,
    spend: boolean,
    isCounted = true,
  ): Promise<Decision> {
    const known = table.decideAtOnce?.(set, key, cost, spend)
    if (known) return Promise.resolve(known)
    const verb = spend ? 'check' : 'peek'
    const wanted: Wanted = { verb, set, key, fields, cost, isCounted: counts(set, isCounted) }
    return asking.decide([wanted])[0] as Promise<Decision>
  }

  async function decideAll(all: readonly Asked[]): Promise<Decision[]> {
    const known = all.map(({ set, key, cost }) => table.decideAtOnce?.(set, key, cost, true))
    const rest = all
      .filter((_, i) => known[i] === undefined)
      .map((call): Wanted => ({ verb: 'check', ...call }))
    const answers = (asking.decide(rest) as Promise<Decision>[]).values()
    return Promise.all(known.map((decision) => decision ?? answers.next().value!))
  }

  async function look(all: readonly Asked[]): Promise<Decision[]> {
    const decisions: Decision[] = []
    for (let i = 0; i < all.length; i += LOOKED_AT) {
      const page = all.slice(i, i + LOOKED_AT).map((call): Wanted => ({ verb: 'peek', ...call }))
      decisions.push(...((await Promise.all(asking.insist(page))) as Decision[]))
    }
    return decisions
  }

  /** Changes a key in the store, and then in the local fallback. */
  async function change(verb: Verb, key: KeyTexts, us = 0): Promise<void> {
    const wanted: Wanted = { verb, set: noRules, ...key, cost: us }
    await asking.insist([wanted])[0]
    local.act(wanted)
  }

  async function insist<T>(call: Promise<T>): Promise<T> {
    try {
      return await call
    } catch (error) {
      throw unavailable(error)
    }
  }

  return {
    decide,
    decideAll,
    look,
    ...holding,
    async charge(call) {
      if (costsAny(call.cost)) await asking.decide([{ verb: 'charge', ...call }])[0]
    },
    async refund(call) {
      await asking.decide([{ verb: 'refund', ...call }])[0]
    },
    block: (key, us) => change('block', key, us),
    unblock: (key) => change('unblock', key),
    reset: (key) => change('reset', key),
    async clear() {
      await insist(table.clear())
      local.clear()
    },
    async *keys() {
      const pages = table.keys()[Symbol.asyncIterator]()
      for (;;) {
        const page = await insist(pages.next())
        if (page.done) return
        yield page.value
      }
    },
    async close() {
      await limit.limited(Promise.resolve(table.close?.())).catch(() => {})
    },
  }
}
