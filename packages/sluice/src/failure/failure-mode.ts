import type { Clock } from '../core/clock.ts'
import { type Cost, costsAny } from '../core/cost.ts'
import { type Decision, noteFailure } from '../core/decision.ts'
import { reasonOf, SluiceError } from '../core/errors.ts'
import { type Held, newGeneration } from '../core/held.ts'
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
  /** `isCounted`: whether a refusal counts for a penalty. Default: it does. */
  decide(call: Asked, spend: boolean, isCounted?: boolean): Promise<Decision>
  decideAll(all: readonly Asked[]): Promise<Decision[]>
  /** What the store itself says, to be shown; rejects when it says nothing. */
  look(all: readonly Asked[]): Promise<Decision[]>
  /** Decides and spends; what a permit holds comes with the decision. */
  acquire(call: Asked, isCounted: boolean): Promise<Acquired>
  /**
   * Ends what a permit holds, and charges or gives back `change`. Never rejects. What was not sent is
   * sent again for `holdUs`; of what may have been done, the units come back when the hold ends.
   */
  finish(call: Asked, held: Held, change: Cost, holdUs: number): Promise<void>
  /** Makes what a permit holds begin now; undefined if it has ended, or that is not known. */
  extend(call: Asked, held: Held): Promise<Held | undefined>
  charge(call: Asked): Promise<void>
  refund(call: Asked): Promise<void>
  /** Blocks for so many microseconds. */
  block(key: KeyTexts, us: number): Promise<void>
  unblock(key: KeyTexts): Promise<void>
  reset(key: KeyTexts): Promise<void>
  close(): Promise<void>
}

/** What is asked about one key. */
export type Asked = Pick<Wanted, 'set' | 'key' | 'fields' | 'cost'>
export type KeyTexts = Pick<Wanted, 'key' | 'fields'>

/** Acquired is a decision, and what it holds if it admits; undefined where that was not counted. */
export interface Acquired {
  readonly decision: Decision
  readonly held: Held | undefined
}

export function createFailureMode(
  table: AsyncTable,
  clock: Clock,
  options: CompleteFailure,
  fields?: readonly string[],
): FailureMode {
  const { onStoreFailure, fleetSize } = options
  const limit = createTimeLimit(options.timeoutMs)
  const breakerOf = createBreakers({
    open: (error) => tell(() => options.onDegraded?.(unavailable(error))),
    closed: () => tell(() => options.onRecovered?.()),
  })
  const breakerFor = (key: string) => breakerOf(table.partOf?.(key) ?? 0)
  const local = createLocal(clock, fleetSize, fields)
  const noRules = table.use([])

  /** Decides, charges and refunds as the operator wants it while the store is down. */
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

  /** For what only the store can do. */
  const insisting: PendingParts = {
    limit,
    instead(_wanted, error) {
      throw unavailable(error)
    },
  }

  function ask(
    parts: PendingParts,
    all: readonly Wanted[],
    made?: (pending: Pending) => void,
  ): Promise<Decision | undefined>[] {
    // One moment for all: those that go in a later trip must not have the earlier deadline.
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

  function decide(
    { set, key, fields, cost }: Asked,
    spend: boolean,
    isCounted = true,
  ): Promise<Decision> {
    const known = table.decideAtOnce?.(set, key, cost, spend)
    if (known) return Promise.resolve(known)
    const verb = spend ? 'check' : 'peek'
    const wanted: Wanted = { verb, set, key, fields, cost, isCounted: counts(set, isCounted) }
    return ask(deciding, [wanted])[0] as Promise<Decision>
  }

  async function decideAll(all: readonly Asked[]): Promise<Decision[]> {
    const known = all.map(({ set, key, cost }) => table.decideAtOnce?.(set, key, cost, true))
    const rest = all
      .filter((_, i) => known[i] === undefined)
      .map((call): Wanted => ({ verb: 'check', ...call }))
    const answers = (ask(deciding, rest) as Promise<Decision>[]).values()
    return Promise.all(known.map((decision) => decision ?? answers.next().value!))
  }

  async function look(all: readonly Asked[]): Promise<Decision[]> {
    const decisions: Decision[] = []
    for (let i = 0; i < all.length; i += LOOKED_AT) {
      const page = all.slice(i, i + LOOKED_AT).map((call): Wanted => ({ verb: 'peek', ...call }))
      decisions.push(...((await Promise.all(ask(insisting, page))) as Decision[]))
    }
    return decisions
  }

  /** Changes a key in the store, and then where this process would decide instead. */
  async function change(verb: Verb, key: KeyTexts, us = 0): Promise<void> {
    const wanted: Wanted = { verb, set: noRules, ...key, cost: us }
    await ask(insisting, [wanted])[0]
    local.act(wanted)
  }

  async function acquire(call: Asked, isCounted: boolean): Promise<Acquired> {
    const own = { generation: newGeneration(), isCounted: counts(call.set, isCounted) }
    const wanted: Wanted = { verb: 'check', ...call, ...own }
    let pending: Pending | undefined
    const [decided] = ask(deciding, [wanted], (made) => {
      pending = made
    })
    const decision = (await decided) as Decision
    return { decision, held: pending!.result }
  }

  async function finish(call: Asked, held: Held, change: Cost, holdUs: number): Promise<void> {
    const wanted: Wanted = { verb: 'finish', ...call, held, change }
    if (local.holds(held)) {
      local.act(wanted)
      return
    }
    const untilMs = performance.now() + holdUs / 1_000
    for (let pauseMs = options.timeoutMs; ; pauseMs *= 2) {
      let pending: Pending | undefined
      const [finished] = ask(insisting, [wanted], (made) => {
        pending = made
      })
      try {
        await finished
        return
      } catch {
        if (pending!.isSent || performance.now() + pauseMs > untilMs) return
        await pause(pauseMs)
      }
    }
  }

  async function extend(call: Asked, held: Held): Promise<Held | undefined> {
    const wanted: Wanted & { result?: Held } = { verb: 'extend', ...call, held }
    if (local.holds(held)) {
      local.act(wanted)
      return wanted.result
    }
    let pending: Pending | undefined
    const [extended] = ask(insisting, [wanted], (made) => {
      pending = made
    })
    await extended.catch(() => {})
    return pending!.result
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
    acquire,
    finish,
    extend,
    async charge(call) {
      if (costsAny(call.cost)) await ask(deciding, [{ verb: 'charge', ...call }])[0]
    },
    async refund(call) {
      await ask(deciding, [{ verb: 'refund', ...call }])[0]
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
  if (SluiceError.is(error)) return error
  return new SluiceError('SLUICE_STORE_UNAVAILABLE', `the store failed: ${reasonOf(error)}`, {
    cause: error,
  })
}

/** Where no penalty counts refusals, all are alike. */
function counts({ penalty }: RuleSet, isCounted: boolean): boolean {
  return isCounted || penalty === undefined
}

/** Waits, without keeping the process alive for that. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer: { unref?(): void } = setTimeout(resolve, ms) as never
    timer.unref?.()
  })
}

/** What a callback throws is nobody's decision: it goes where uncaught errors go. */
function tell(callback: () => void): void {
  queueMicrotask(callback)
}
