import type { Clock } from '../core/clock.ts'
import { type Decision, noteFailure } from '../core/decision.ts'
import { reasonOf, SluiceError } from '../core/errors.ts'
import type { AsyncTable, RuleSet, Verb } from '../stores/store.ts'
import { createBreakers } from './breaker.ts'
import type { CompleteFailure } from './failure-options.ts'
import { createLocal, uncounted } from './local.ts'
import { Pending, type PendingParts, type Wanted } from './pending.ts'
import { createTimeLimit } from './time-limit.ts'

/** How many keys are looked at together, to be shown. */
const LOOKED_AT = 128

/**
 * FailureMode is an async table that always decides, in time, whatever becomes of its store. What
 * changes the store on purpose rejects instead of pretending success.
 */
export interface FailureMode extends Pick<AsyncTable, 'clear' | 'keys'> {
  decide(set: RuleSet, key: string, cost: number, spend: boolean): Promise<Decision>
  decideAll(all: readonly Wanted[]): Promise<Decision[]>
  /** What the store itself says, to be shown; rejects when it says nothing. */
  look(all: readonly Wanted[]): Promise<Decision[]>
  charge(set: RuleSet, key: string, cost: number): Promise<void>
  refund(set: RuleSet, key: string, cost: number): Promise<void>
  /** Blocks for so many microseconds. */
  block(key: string, us: number): Promise<void>
  unblock(key: string): Promise<void>
  reset(key: string): Promise<void>
  close(): Promise<void>
}

export function createFailureMode(
  table: AsyncTable,
  clock: Clock,
  options: CompleteFailure,
): FailureMode {
  const { onStoreFailure, fleetSize } = options
  const limit = createTimeLimit(options.timeoutMs)
  const breakerOf = createBreakers({
    open: (error) => tell(() => options.onDegraded?.(unavailable(error))),
    closed: () => tell(() => options.onRecovered?.()),
  })
  const breakerFor = (key: string) => breakerOf(table.partOf?.(key) ?? 0)
  const local = createLocal(clock, fleetSize)
  const noRules = table.use([])

  /** Decides, charges and refunds as the operator wants it while the store is down. */
  const deciding: PendingParts = {
    limit,
    instead(wanted, error) {
      if (onStoreFailure === 'local') return local.act(wanted)
      const decision = uncounted(wanted.set.rules, onStoreFailure)
      return onStoreFailure === 'closed' ? noteFailure(decision, error) : decision
    },
  }

  /** For what only the store can do. */
  const insisting: PendingParts = {
    limit,
    instead(_wanted, error) {
      throw unavailable(error)
    },
  }

  function ask(parts: PendingParts, all: readonly Wanted[]): Promise<Decision | undefined>[] {
    // One moment for all: those that go in a later trip must not have the earlier deadline.
    const nowMs = performance.now()
    const asked: Pending[] = []
    const answers = all.map(
      (wanted) =>
        new Promise<Decision | undefined>((resolve, reject) => {
          const breaker = breakerFor(wanted.key)
          const pending = new Pending(parts, breaker, wanted, nowMs, resolve, reject)
          if (pending.pass) asked.push(pending)
          else pending.answerInstead()
        }),
    )
    if (asked.length > 0) table.ask(asked)
    return answers
  }

  function decide(set: RuleSet, key: string, cost: number, spend: boolean): Promise<Decision> {
    const known = table.decideAtOnce?.(set, key, cost, spend)
    if (known) return Promise.resolve(known)
    const wanted: Wanted = { verb: spend ? 'check' : 'peek', set, key, cost }
    return ask(deciding, [wanted])[0] as Promise<Decision>
  }

  async function decideAll(all: readonly Wanted[]): Promise<Decision[]> {
    const known = all.map(({ verb, set, key, cost }) =>
      table.decideAtOnce?.(set, key, cost, verb === 'check'),
    )
    const rest = all.filter((_, i) => known[i] === undefined)
    const answers = (ask(deciding, rest) as Promise<Decision>[]).values()
    return Promise.all(known.map((decision) => decision ?? answers.next().value!))
  }

  async function look(all: readonly Wanted[]): Promise<Decision[]> {
    const decisions: Decision[] = []
    for (let i = 0; i < all.length; i += LOOKED_AT) {
      const page = all.slice(i, i + LOOKED_AT)
      decisions.push(...((await Promise.all(ask(insisting, page))) as Decision[]))
    }
    return decisions
  }

  /** Changes a key in the store, and then where this process would decide instead. */
  async function change(verb: Verb, key: string, us = 0): Promise<void> {
    const wanted: Wanted = { verb, set: noRules, key, cost: us }
    await ask(insisting, [wanted])[0]
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
    async charge(set, key, cost) {
      if (cost > 0) await ask(deciding, [{ verb: 'charge', set, key, cost }])[0]
    },
    async refund(set, key, cost) {
      await ask(deciding, [{ verb: 'refund', set, key, cost }])[0]
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

function unavailable(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  return new SluiceError('SLUICE_STORE_UNAVAILABLE', `the store failed: ${reasonOf(error)}`, {
    cause: error,
  })
}

/** What a callback throws is nobody's decision: it goes where uncaught errors go. */
function tell(callback: () => void): void {
  queueMicrotask(callback)
}
