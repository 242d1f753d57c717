import type { Decision } from '../core/decision.ts'
import type { AnyKey } from '../core/key.ts'
import type { RuleSet, Table } from '../stores/store.ts'
import type { Fields } from './fields.ts'
import type { Call, Gate } from './gate.ts'
import type { CostByRule } from './key-types.ts'
import type { OpenPermits } from './permit.ts'
import type { Policy } from './policy.ts'
import type { WaitQueue } from './wait-queue.ts'

/** SyncParts is what the verbs of a synchronous limiter share. */
export interface SyncParts {
  readonly table: Table<RuleSet, AnyKey>
  readonly gate: Gate
  readonly line: WaitQueue
  readonly open: OpenPermits
  readonly policy: Policy | undefined
  readonly fields: Fields | undefined
  /** Decides and spends. Counts a refusal for the penalty, and returns the block that it causes. */
  decideCall(call: Call, atUs?: number): Decision
  /** Calls `onDecision`. */
  report(decision: Decision, key: string, cost: number | CostByRule): Decision
  /** Lets calls in line for this key, or for a part of it, look again. */
  wake(key: AnyKey): void
}
