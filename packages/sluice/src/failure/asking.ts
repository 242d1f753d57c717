import { type Decision, noteFailure } from '../core/decision.ts'
import { reasonOf, SluiceError } from '../core/errors.ts'
import type { AsyncTable } from '../stores/store.ts'
import { createBreakers } from './breaker.ts'
import type { CompleteFailure } from './failure-options.ts'
import { type Local, uncounted } from './local.ts'
import { Pending, type PendingParts, type Wanted } from './pending.ts'
import type { TimeLimit } from './time-limit.ts'

/**
 * Ask sends requests to the store and returns a promise per request. Calls `made` with each of
 * them.
 */
type Ask = (
  all: readonly Wanted[],
  made?: (pending: Pending) => void,
) => Promise<Decision | undefined>[]

/** Asking sends requests to a store through a time limit and a circuit breaker. */
export interface Asking {
  /** For checks, charges and refunds: while the store is down, `onStoreFailure` decides. */
  readonly decide: Ask
  /** For calls that need the store: rejects with `SLUICE_STORE_UNAVAILABLE` while it is down. */
  readonly insist: Ask
}

/** createAsking creates the time limit and circuit breakers around a table. */
export function createAsking(
  table: AsyncTable,
  options: CompleteFailure,
  local: Local,
  limit: TimeLimit,
): Asking {
  const { onStoreFailure } = options
  const breakerOf = createBreakers({
    open: (error) => tell(() => options.onDegraded?.(unavailable(error))),
    closed: () => tell(() => options.onRecovered?.()),
  })
  const breakerFor = (key: string) => breakerOf(table.partOf?.(key) ?? 0)

  function ask(
    parts: PendingParts,
    all: readonly Wanted[],
    made?: (pending: Pending) => void,
  ): Promise<Decision | undefined>[] {
    // One reading for all: a request in a later trip must not have an earlier deadline.
    const nowMs = performance.now()
    const asked: Pending[] = []
    const answers = all.map(
      (wanted) =>
        new Promise<Decision | undefined>((resolve, reject) => {
          const breaker = breakerFor(wanted.key)
          const pending = new Pending(parts, breaker, wanted, nowMs, resolve, reject)
          made?.(pending)
          if (pending.pass) asked.push(pending)
          else pending.answerInstead()
        }),
    )
    if (asked.length > 0) table.ask(asked)
    return answers
  }

  const insisting: PendingParts = {
    limit,
    instead(_wanted, error) {
      throw unavailable(error)
    },
  }

  const deciding: PendingParts = {
    limit,
    instead(wanted, error) {
      if (onStoreFailure === 'local') return local.act(wanted)
      const decision = uncounted(wanted.set.rules, onStoreFailure)
      return onStoreFailure === 'closed' ? noteFailure(decision, error) : decision
    },
    cameLate({ set, key, fields, cost }, held) {
      const change = typeof cost === 'number' ? -cost : cost.map((units) => -units)
      ask(insisting, [{ verb: 'finish', set, key, fields, cost, held, change }])[0].catch(() => {})
    },
  }

  return {
    decide: (all, made) => ask(deciding, all, made),
    insist: (all, made) => ask(insisting, all, made),
  }
}

/** unavailable returns the error for callers that need the store while it fails. */
export function unavailable(error: unknown): SluiceError {
  if (SluiceError.is(error)) return error
  return new SluiceError('SLUICE_STORE_UNAVAILABLE', `the store failed: ${reasonOf(error)}`, {
    cause: error,
  })
}

/**
 * Calls a callback. An error that it throws becomes an uncaught exception, and changes no decision.
 */
function tell(callback: () => void): void {
  queueMicrotask(callback)
}
