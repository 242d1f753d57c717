import type { Cost } from '../core/cost.ts'
import type { Decision } from '../core/decision.ts'
import type { Held } from '../core/held.ts'
import type { AnyKey } from '../core/key.ts'
import type { RuleSet, Table } from '../stores/store.ts'
import type { Call } from './gate.ts'
import { holdUsOf, type OpenPermits, type Permit, permitOn } from './permit.ts'

/** The parts of a synchronous permit besides its table. */
interface SyncParts {
  readonly decision: Decision
  readonly spentUs: number
  readonly open: OpenPermits
  costOf(set: RuleSet, cost: unknown): Cost
  /** Called when it has ended, so that waiting calls can check again. */
  ended(): void
}

/** permitOf creates the permit of a call that a table has just admitted. */
export function permitOf(
  table: Table<RuleSet, AnyKey>,
  { set, key, cost }: Call,
  { decision, spentUs, open, costOf, ended }: SyncParts,
): Permit<never> {
  let held: Held = { cost, spentUs, holds: set.held.slice() }
  return permitOn<Permit<never>, void>(
    {
      decision,
      cost,
      holdUs: holdUsOf(set.rules),
      read: (actual) => costOf(set, actual),
      done() {},
      finish(change) {
        table.finish(set, key, held, change, table.nowUs())
        ended()
      },
      extend() {
        const isExtended = table.extend(set, key, held, table.nowUs())
        // If one hold has ended, the permit has ended: its other holds expire by themselves.
        const holds = isExtended ? set.held.slice() : new Float64Array(held.holds.length)
        held = { ...held, holds }
        return isExtended
      },
    },
    open,
  )
}
