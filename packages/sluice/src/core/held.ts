import type { Cost } from './cost.ts'

/** Held is what a permit knows of its spend. */
export interface Held {
  /** What was spent, and the store's instant of that. */
  readonly cost: Cost
  /** Of several engines, the instant of each rule. */
  readonly spentUs: Cost
  /** For each rule two numbers: the generation of its state, and the slot that counts the hold. */
  readonly holds: Float64Array
}

/** newGeneration is what a state without a generation is to be called: never the same twice. */
export function newGeneration(): number {
  return 1 + Math.floor(Math.random() * 2 ** 48)
}
