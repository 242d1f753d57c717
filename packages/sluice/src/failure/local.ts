import type { Clock } from '../core/clock.ts'
import { type Decision, decisionOf, type Source } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import { memoryStore } from '../stores/memory/memory.ts'
import type { RuleSet, Table } from '../stores/store.ts'
import type { Question } from './asked.ts'
import { shareOf } from './share.ts'

/** How long a caller is told to wait when nobody knows. */
const UNKNOWN_WAIT_MS = 1_000

/** createLocal keeps the shares of a fleet's rules in memory while the store is away. */
export function createLocal(clock: Clock, fleetSize: number) {
  let table: Table | undefined
  const sets = new WeakMap<RuleSet, RuleSet>()
  const opened = () => {
    table ??= memoryStore({ clock }).open('local', [], true)
    return table
  }

  function setOf(set: RuleSet): RuleSet {
    let own = sets.get(set)
    if (!own) {
      own = opened().use(set.rules.map((rule) => shareOf(rule, fleetSize)))
      own.readings.source = 'local'
      sets.set(set, own)
    }
    return own
  }

  return {
    decide({ set, key, cost, spend }: Question): Decision {
      const own = setOf(set)
      if (cost > own.capacity) return uncounted(own.rules, 'local')
      opened().decide(own, key, cost, spend)
      return decisionOf(own.rules, own.readings)
    },
    charge: (set: RuleSet, key: string, cost: number) =>
      opened().charge(setOf(set), key, cost, opened().nowUs()),
    refund: (set: RuleSet, key: string, cost: number) =>
      opened().refund(setOf(set), key, cost, opened().nowUs()),
    block(key: string, us: number) {
      const nowUs = opened().nowUs()
      opened().block(key, nowUs + us, nowUs)
    },
    unblock: (key: string) => table?.unblock(key),
    reset: (key: string) => table?.reset(key, table.nowUs()),
    clear: () => table?.clear(),
  }
}

/** uncounted is a decision that nobody counted: it passes or not, and nothing else is known. */
export function uncounted(rules: readonly Rule[], source: Source): Decision {
  const allowed = source === 'open'
  const retryAfterMs = allowed ? 0 : UNKNOWN_WAIT_MS
  const each = rules.map(({ name, capacity }) => ({
    rule: name,
    capacity,
    remaining: 0,
    retryAfterMs,
    resetAfterMs: retryAfterMs,
    nextAfterMs: capacity === Number.POSITIVE_INFINITY ? 0 : retryAfterMs,
    delayMs: 0,
  }))
  const capacity = Math.min(...rules.map((rule) => rule.capacity))
  return { ...each[0], capacity, allowed, rules: each, source }
}
