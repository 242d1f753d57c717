import type { Rule } from 'sluice'

/** ShownRule is a rule as people want to see it; JSON makes null of what is infinite. */
export interface ShownRule {
  readonly name: string
  readonly algorithm: string
  readonly limit: number | null
  readonly perMs: number
  readonly capacity: number | null
  /** As a configuration has it: `60/1m burst 20`. */
  readonly text: string
}

/** shownRule is what people want to see of a rule. */
export function shownRule({ name, algorithm, limit, perUs, capacity, text }: Rule): ShownRule {
  return { name, algorithm: algorithm.name, limit, perMs: perUs / 1_000, capacity, text }
}
