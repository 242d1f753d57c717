import type { Cost } from './cost.ts'

/** Held is a permit's record of its spend. */
export interface Held {
  /** The cost that was spent. */
  readonly cost: Cost
  /** The store's instant of the spend. With several engines, one instant per rule. */
  readonly spentUs: Cost
  /** For each rule two numbers: the generation of its state, and the slot that counts the hold. */
  readonly holds: Float64Array
}

/** newGeneration returns a unique generation for a new state that holds units. */
export function newGeneration(): number {
  return 1 + Math.floor(Math.random() * 2 ** 48)
}
