import { type Cost, costAt } from '../core/cost.ts'
import { type Decision, withoutDelay } from '../core/decision.ts'
import { after, type Later } from '../core/later.ts'
import type { Rule } from '../core/rule.ts'
import { admitted } from './wait-options.ts'

/** Ends are the ways in which a permit ends. The first one counts, and later ones do nothing. */
interface Ends<Units, Done> {
  /** Ends the hold. What rates were charged stays charged. */
  release(): Done
  /** Ends the hold, and charges or gives back the difference to what was really used. */
  settle(actual: Units): Done
  /** Ends the hold, and gives everything back. Slots of a leaky bucket stay given out. */
  cancel(): Done
}

/**
 * Permit is what `tryAcquire` and `acquire` give. It keeps the rules of the moment it was given. Dispose
 * of it, `using permit = …`, to release it.
 */
export interface Permit<Units = number> extends Ends<Units, void> {
  /** Always true; that of a `NoPermit` is false. */
  readonly allowed: true
  /** What the permit was given by. */
  readonly decision: Decision
  /** Makes the hold begin now; false if it has ended. */
  extend(): boolean
  [Symbol.dispose](): void
}

/**
 * AsyncPermit is a permit of a store that answers later. Its promises do not reject: what cannot reach
 * the store is sent again until the hold has ended.
 */
export interface AsyncPermit<Units = number> extends Ends<Units, Promise<void>> {
  /** Always true; that of a `NoPermit` is false. */
  readonly allowed: true
  /** What the permit was given by. */
  readonly decision: Decision
  /** Makes the hold begin now; false if it has ended, or the store does not say. */
  extend(): Promise<boolean>
  /** Releases in the background. */
  [Symbol.dispose](): void
  [Symbol.asyncDispose](): Promise<void>
}

/** NoPermit is the answer to an acquire that was refused. */
export interface NoPermit {
  /** Always false; that of a permit is true. */
  readonly allowed: false
  /** The refusal. */
  readonly decision: Decision
  /** Does nothing, so that `using` takes a refusal as well. */
  [Symbol.dispose](): void
  [Symbol.asyncDispose](): Promise<void>
}

/** noPermit is a refused acquire. */
export function noPermit(decision: Decision): NoPermit {
  return {
    allowed: false,
    decision,
    [Symbol.dispose]() {},
    async [Symbol.asyncDispose]() {},
  }
}

/** PermitParts are what a permit does to its store. */
export interface PermitParts<Done extends Later<void>> {
  readonly decision: Decision
  readonly cost: Cost
  /** Reads what was really used, as a caller gives it; throws if it makes no sense. */
  read(actual: unknown): Cost
  /** Ends the hold, and charges or gives back a change. */
  finish(change: Cost): Done
  extend(): Later<boolean>
  /** How long it is held at most, in microseconds; 0 if it holds nothing. */
  readonly holdUs: number
  /** What a second end answers. */
  done(): Done
}

/** permitOn is a permit; `Given` is `Permit` or `AsyncPermit`, by what its parts answer. */
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

/** Taken is what a line gives to `acquire`. */
export interface Taken<Given> {
  readonly decision: Decision
  readonly permit: Given | NoPermit
}

/** reported tells of a permit; where that throws, its caller never gets it, and it is cancelled. */
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

/** permitFrom is the permit that a wait has ended with, or throws if it is a refusal. */
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

/** OpenPermits counts permits that have not ended. Those that were forgotten go when their hold ends. */
export interface OpenPermits {
  count(): number
  /** `holdUs` is how long it is held at most; what holds nothing is not counted. */
  add(holdUs: number): object
  delete(entry: object): void
}

export function createOpenPermits(nowUs: () => number): OpenPermits {
  const entries = new Set<{ readonly untilUs: number }>()

  /** Drops what is over, from the oldest on. */
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
      // No timers: each new one looks at two others.
      sweep(2)
      const entry = { untilUs: nowUs() + holdUs }
      if (holdUs > 0) entries.add(entry)
      return entry
    },
    delete: (entry) => void entries.delete(entry as never),
  }
}

/** holdUsOf is how long these rules hold a permit at most: a quarter longer than they say. */
export function holdUsOf(rules: readonly Rule[]): number {
  const holds = rules.filter(({ algorithm }) => algorithm.holds)
  return Math.max(0, ...holds.map(({ perUs }) => perUs * 1.25))
}
