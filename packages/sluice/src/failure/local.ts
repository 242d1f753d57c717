import type { Clock } from '../core/clock.ts'
import type { Decision, Source } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import { memoryStore } from '../stores/memory/memory.ts'
import type { RuleSet, Table } from '../stores/store.ts'
import type { Wanted } from './pending.ts'
import { shareOf } from './share.ts'

/** How long a caller is told to wait when the store cannot say. */
const UNKNOWN_WAIT_MS = 1_000

/** createLocal keeps the shares of a fleet's rules in memory while the store is down. */
export function createLocal(clock: Clock, fleetSize: number) {
  let opened: Table | undefined
  const sets = new WeakMap<RuleSet, RuleSet>()

  function setOf(table: Table, set: RuleSet): RuleSet {
    let own = sets.get(set)
    if (!own) {
      own = table.use(set.rules.map((rule) => shareOf(rule, fleetSize)))
      sets.set(set, own)
    }
    return own
  }

  function decide(table: Table, { verb, set, key, cost }: Wanted): Decision {
    const own = setOf(table, set)
    if (cost > own.capacity) return uncounted(own.rules, 'local')
    const decision = table.decide(own, key, cost, verb === 'check')
    return decision.source === 'blocked' ? decision : { ...decision, source: 'local' }
  }

  return {
    /** Does what was wanted of the store. */
    act(wanted: Wanted): Decision | undefined {
      const { verb, set, key, cost } = wanted
      // Nothing to undo where nothing was ever decided here.
      if (!opened && (verb === 'unblock' || verb === 'reset')) return undefined
      opened ??= memoryStore({ clock }).open('local', [], true)
      const table = opened
      if (verb === 'check' || verb === 'peek') return decide(table, wanted)
      const nowUs = table.nowUs()
      if (verb === 'block') table.block(key, nowUs + cost, nowUs)
      else if (verb === 'unblock') table.unblock(key)
      else if (verb === 'reset') table.reset(key, nowUs)
      else table[verb](setOf(table, set), key, cost, nowUs)
      return undefined
    },
    clear: () => opened?.clear(),
  }
}

/** uncounted is a decision that was not counted: it passes or not, and nothing else is known. */
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
