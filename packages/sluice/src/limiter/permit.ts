import { type Cost, costAt } from '../core/cost.ts'
import { type Decision, withoutDelay } from '../core/decision.ts'
import { after, type Later } from '../core/later.ts'
import type { Rule } from '../core/rule.ts'
import { admitted } from './wait-options.ts'

/** Ends are the ways to end a permit. The first call counts; later ones do nothing. */
interface Ends<Units, Done> {
  /** Ends the hold. Units spent on rates stay spent. */
  release(): Done
  /** Ends the hold, and charges or refunds the difference to the actual cost. */
  settle(actual: Units): Done
  /** Ends the hold, and refunds everything except slots of leaky buckets. */
  cancel(): Done
}

/**
 * Permit is the result of an admitted `tryAcquire` or `acquire`. It keeps the rules of that moment.
 * `using permit = …` releases it at the end of the block.
 */
export interface Permit<Units = number> extends Ends<Units, void> {
  /** Always true; that of a `NoPermit` is false. */
  readonly allowed: true
  /** What the permit was given by. */
  readonly decision: Decision
  /** Restarts the hold now; false if it has ended. */
  extend(): boolean
  [Symbol.dispose](): void
}

/**
 * AsyncPermit is a permit on an asynchronous store. Its promises do not reject: a call that cannot
 * reach the store is retried until the hold has ended.
 */
export interface AsyncPermit<Units = number> extends Ends<Units, Promise<void>> {
  /** Always true; that of a `NoPermit` is false. */
  readonly allowed: true
  /** What the permit was given by. */
  readonly decision: Decision
  /** Restarts the hold now; false if it has ended or the store does not answer. */
  extend(): Promise<boolean>
  /** Releases in the background. */
  [Symbol.dispose](): void
  [Symbol.asyncDispose](): Promise<void>
}

/** NoPermit is the result of a refused `tryAcquire`. */
export interface NoPermit {
  /** Always false; that of a permit is true. */
  readonly allowed: false
  /** The refusal. */
  readonly decision: Decision
  /** Does nothing, so that `using` also accepts a refusal. */
  [Symbol.dispose](): void
  [Symbol.asyncDispose](): Promise<void>
}

/** noPermit creates the result of a refused `tryAcquire`. */
export function noPermit(decision: Decision): NoPermit {
  return {
    allowed: false,
    decision,
    [Symbol.dispose]() {},
    async [Symbol.asyncDispose]() {},
  }
}

/** PermitParts are the calls of a permit to its store. */
export interface PermitParts<Done extends Later<void>> {
  readonly decision: Decision
  readonly cost: Cost
  /** Checks and reads the actual cost that a caller gives. */
  read(actual: unknown): Cost
  /** Ends the hold, and charges or refunds a change. */
  finish(change: Cost): Done
  extend(): Later<boolean>
  /** The longest duration of the hold, in microseconds; 0 if it holds nothing. */
  readonly holdUs: number
  /** Returns the result of ending it again. */
  done(): Done
}

/** permitOn creates a permit. `Given` is `Permit` or `AsyncPermit`, depending on its parts. */
export function permitOn<Given, Done extends Later<void>>(
  parts: PermitParts<Done>,
  open: OpenPermits,
): Given {
  const { decision, cost, holdUs } = parts
  let isOpen = true
  let entry = open.add(holdUs)

  function end(change: Cost): Done {
    if (!isOpen) return parts.done()
    isOpen = false
    open.delete(entry)
    return parts.finish(change)
  }

  function extended(isExtended: boolean): boolean {
    if (isExtended && isOpen) {
      open.delete(entry)
      entry = open.add(holdUs)
    }
    return isExtended
  }

  const release = () => end(0)
  return {
    allowed: true,
    decision,
    release,
    settle: (actual: unknown) => end(difference(parts.read(actual), cost)),
    cancel: () => end(difference(0, cost)),
    extend: () => (isOpen ? after(parts.extend(), extended) : after(parts.done(), () => false)),
    [Symbol.dispose]: () => void release(),
    [Symbol.asyncDispose]: async () => void (await release()),
  } as Given
}

/** Taken is the result of the queue for `acquire`. */
export interface Taken<Given> {
  readonly decision: Decision
  readonly permit: Given | NoPermit
}

/**
 * reported reports a permit. If that throws, the caller never gets the permit, so it is cancelled.
 */
export function reported<Given extends { readonly decision: Decision }>(
  permit: Given,
  report: (decision: Decision) => Decision,
): Given {
  try {
    report(permit.decision)
    return permit
  } catch (error) {
    void (permit as { cancel?(): unknown }).cancel?.()
    throw error
  }
}

/** permitFrom returns the permit of a finished wait, or throws if it was refused. */
export function permitFrom<Given extends { readonly decision: Decision }>(
  key: string,
  { decision, ...taken }: Taken<Given> | { readonly decision: Decision },
  report: (decision: Decision) => Decision,
): Given {
  const { permit } = taken as Partial<Taken<Given & { readonly allowed: true }>>
  const decided = withoutDelay(decision)
  if (!permit?.allowed) return admitted(key, report(decided)) as never
  return reported({ ...permit, decision: decided }, report)
}

function difference(actual: Cost, cost: Cost): Cost {
  if (typeof actual === 'number' && typeof cost === 'number') return actual - cost
  const { length } = (typeof cost === 'number' ? actual : cost) as readonly number[]
  return Array.from({ length }, (_, i) => costAt(actual, i) - costAt(cost, i))
}

/** OpenPermits counts open permits. Abandoned ones are dropped when their hold ends. */
export interface OpenPermits {
  count(): number
  /** Adds a permit whose hold lasts at most `holdUs`. Permits that hold nothing are not counted. */
  add(holdUs: number): object
  delete(entry: object): void
}

/** createOpenPermits creates a counter without permits. */
export function createOpenPermits(nowUs: () => number): OpenPermits {
  const entries = new Set<{ readonly untilUs: number }>()

  /** Drops expired permits, from the oldest on. */
  function sweep(most: number): void {
    const now = nowUs()
    let looked = 0
    for (const entry of entries) {
      if (looked === most) return
      looked += 1
      if (entry.untilUs <= now) entries.delete(entry)
    }
  }

  return {
    count() {
      sweep(Number.POSITIVE_INFINITY)
      return entries.size
    },
    add(holdUs) {
      // No timers: each new permit checks two others.
      sweep(2)
      const entry = { untilUs: nowUs() + holdUs }
      if (holdUs > 0) entries.add(entry)
      return entry
    },
    delete: (entry) => void entries.delete(entry as never),
  }
}

/** holdUsOf returns the longest hold of a permit by these rules: 1.25 times their `hold`. */
export function holdUsOf(rules: readonly Rule[]): number {
  const holds = rules.filter(({ algorithm }) => algorithm.holds)
  return Math.max(0, ...holds.map(({ perUs }) => perUs * 1.25))
}
