import type { Decision, Source } from 'sluice'

/** Decided is a decision of the gateway or the API, as metrics, logs and the dashboard get it. */
export interface Decided {
  /** Empty when a call of the API was decided by the rules of a tier. */
  readonly route: string
  readonly tier: string
  readonly key: string
  readonly cost: number
  readonly decision: Decision
  /** Whether a rule refused it on a route in shadow mode, which let it through. */
  readonly shadowed: boolean
  /** Whether it was a call of the API, whose caller chooses the cost. */
  readonly isByApi?: boolean
  /** How long the decision took; undefined when it was not measured. */
  readonly seconds: number | undefined
}

/** Outcome is the result of a decision; `shadowed` is refused, but let through in shadow mode. */
export type Outcome = 'allowed' | 'refused' | 'shadowed'

/** isEnforced tells whether a refusal is enforced: shadow mode suspends rules, not blocks. */
export function isEnforced(source: Source, isShadow: boolean): boolean {
  return !isShadow || source === 'blocked'
}

/** outcomeOf returns the outcome of a decision. */
export function outcomeOf({ decision, shadowed }: Pick<Decided, 'decision' | 'shadowed'>): Outcome {
  if (decision.allowed) return 'allowed'
  return shadowed ? 'shadowed' : 'refused'
}
