import { RECENT } from '../core/algorithm.ts'
import { CENTURY_MS, durationUs } from '../core/duration.ts'
import type { AnyKey } from '../core/key.ts'
import type { RuleSet } from '../stores/store.ts'
import { shownKey, tierKeyOf } from './fields.ts'
import { ratesOnly } from './gate.ts'
import type { SyncParts } from './sync-parts.ts'
import type { Limiter } from './verbs.ts'

type UpkeepVerbs = Pick<
  Limiter,
  'charge' | 'refund' | 'block' | 'unblock' | 'reset' | 'clear' | 'entries' | 'size'
>

/** upkeepVerbs creates the verbs that change or list states without a decision. */
export function upkeepVerbs({ table, gate, line, policy, fields, wake }: SyncParts): UpkeepVerbs {
  const { begin, checkOpen, setOf } = gate
  const { decide, nowUs } = table

  /** Returns the rules under which to list a key: the present ones, else those that wrote its row. */
  function listedSet(key: AnyKey): RuleSet {
    if (!policy || policy.knows(tierKeyOf(key))) return setOf(key, undefined)
    const rules = table.rulesOf(key)
    return rules.length > 0
      ? table.use(rules, gate.offIn(key))
      : setOf(key, { tier: policy.shownTier })
  }

  return {
    charge(given, units, options) {
      const { set, key, cost } = begin(given, units, options)
      table.charge(set, key, ratesOnly(set, cost), nowUs())
    },

    refund(given, units, options) {
      const { set, key, cost } = begin(given, units, options)
      table.refund(set, key, cost, nowUs(), RECENT)
      wake(key)
    },

    block(given, duration) {
      const key = gate.keyOf(given)
      const atUs = nowUs()
      table.block(key, atUs + durationUs('block: duration', duration, 0.001, CENTURY_MS), atUs)
    },

    unblock(given) {
      const key = gate.keyOf(given)
      table.unblock(key)
      wake(key)
    },

    reset(given) {
      const key = gate.keyOf(given)
      table.reset(key, nowUs())
      wake(key)
    },

    clear() {
      checkOpen()
      table.clear()
      line.wakeAll()
    },

    *entries() {
      checkOpen()
      for (const key of table.keys(nowUs())) {
        yield { ...shownKey(key, fields), decision: decide(listedSet(key), key, 1, false) }
      }
    },

    size() {
      checkOpen()
      return table.size(nowUs())
    },
  }
}
