import type { Decision } from 'sluice'

/** Decided is a decision of the gateway or the API, for all who count it or write it down. */
export interface Decided {
  /** Empty for the rules of a tier that were asked for over the API. */
  readonly route: string
  readonly tier: string
  readonly key: string
  readonly cost: number
  readonly decision: Decision
  /** The route refuses nobody. */
  readonly shadowed: boolean
  /** How long it took to decide; undefined when nobody measured it. */
  readonly seconds: number | undefined
}

/** Outcome is what a decision came to; `shadowed` is refused, and let through. */
export type Outcome = 'allowed' | 'refused' | 'shadowed'

/** outcomeOf tells what a decision came to. */
export function outcomeOf({ decision, shadowed }: Pick<Decided, 'decision' | 'shadowed'>): Outcome {
  if (decision.allowed) return 'allowed'
  return shadowed ? 'shadowed' : 'refused'
}
