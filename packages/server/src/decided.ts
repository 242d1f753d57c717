import type { Decision, Source } from 'sluice'

/** Decided is a decision of the gateway or the API, for all who count it or write it down. */
export interface Decided {
  /** Empty for the rules of a tier that were asked for over the API. */
  readonly route: string
  readonly tier: string
  readonly key: string
  readonly cost: number
  readonly decision: Decision
  /** Refused by a rule of a route in shadow mode, and let through. */
  readonly shadowed: boolean
  /** Whether it was asked for over the API, at a cost that the caller says. */
  readonly isByApi?: boolean
  /** How long it took to decide; undefined when nobody measured it. */
  readonly seconds: number | undefined
}

/** Outcome is what a decision came to; `shadowed` is refused, and let through. */
export type Outcome = 'allowed' | 'refused' | 'shadowed'

/** isEnforced tells whether a decision holds on a route: shadow mode is about rules, not blocks. */
export function isEnforced(source: Source, isShadow: boolean): boolean {
  return !isShadow || source === 'blocked'
}

/** outcomeOf tells what a decision came to. */
export function outcomeOf({ decision, shadowed }: Pick<Decided, 'decision' | 'shadowed'>): Outcome {
  if (decision.allowed) return 'allowed'
  return shadowed ? 'shadowed' : 'refused'
}
