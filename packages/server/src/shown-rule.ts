import type { Rule } from 'sluice'

/** ShownRule is a rule for display; JSON turns infinite values into null. */
export interface ShownRule {
  readonly name: string
  readonly algorithm: string
  readonly limit: number | null
  readonly perMs: number
  readonly capacity: number | null
  /** As written in a configuration: `60/1m burst 20`. */
  readonly text: string
}

/** shownRule returns a rule for display. */
export function shownRule({ name, algorithm, limit, perUs, capacity, text }: Rule): ShownRule {
  return { name, algorithm: algorithm.name, limit, perMs: perUs / 1_000, capacity, text }
}
