import { checkCost } from '../core/cost.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { checkKey, isKey } from '../core/key.ts'
import { checkOptions } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import type { RuleSet } from '../stores/store.ts'
import type { Policy } from './policy.ts'
import type { CallOptions } from './verbs.ts'

const CALL_OPTIONS = ['tier']

/** Gate is where every verb of a limiter begins: it checks what came, and gives the rules. */
export interface Gate {
  /** Throws once the limiter is closed. */
  checkOpen(): void
  /** For verbs about a key: the rules that hold for it. */
  begin(key: string, cost: number, options: CallOptions | undefined): RuleSet
  /** The same for verbs that may be refused: a cost that could never pass throws. */
  beginDecision(key: string, cost: number, options: CallOptions | undefined): RuleSet
  setOf(key: string, options: CallOptions | undefined): RuleSet
  /** Closes it; false if it was closed before. */
  close(): boolean
}

/** createGate is for a limiter of one list of rules, or of a policy. */
export function createGate(
  name: string,
  rules: readonly Rule[] | Policy,
  use: (rules: readonly Rule[]) => RuleSet,
): Gate {
  const policy = 'rulesFor' in rules ? rules : undefined
  const only = 'rulesFor' in rules ? undefined : use(rules)
  const sets = new WeakMap<readonly Rule[], RuleSet>()
  let closed = false
  /** The rules of all calls, as long as it is open and has no policy. */
  let quick = only

  function setFor(rules: readonly Rule[]): RuleSet {
    let set = sets.get(rules)
    if (!set) {
      set = use(rules)
      sets.set(rules, set)
    }
    return set
  }

  function setOf(key: string, options: CallOptions | undefined): RuleSet {
    if (options !== undefined) checkTier(options)
    if (policy === undefined) return only!
    return setFor(policy.rulesFor(key, options?.tier))
  }

  function checkTier({ tier }: CallOptions): void {
    if (tier === undefined || (policy && typeof tier === 'string')) return
    throw new SluiceError(
      'SLUICE_OPTION',
      policy
        ? `a tier is passed by its name, got ${shown(tier)}.`
        : 'a tier was passed, but the limiter has no policy.',
    )
  }

  function checkOpen(): void {
    if (closed) throw new SluiceError('SLUICE_CLOSED', `the limiter "${name}" is closed.`)
  }

  function begin(key: string, cost: number, options: CallOptions | undefined): RuleSet {
    checkOpen()
    checkKey(key)
    if (cost !== 1) checkCost(cost)
    if (options !== undefined) checkOptions('options of a call', options, CALL_OPTIONS)
    return setOf(key, options)
  }

  function beginDecision(key: string, cost: number, options: CallOptions | undefined): RuleSet {
    // What nearly every call is, in few steps: every capacity is at least 1.
    if (quick !== undefined && cost === 1 && options === undefined && isKey(key)) return quick
    return checkedCapacity(begin(key, cost, options), cost)
  }

  return {
    checkOpen,
    begin,
    beginDecision,
    setOf,
    close() {
      const wasOpen = !closed
      closed = true
      quick = undefined
      return wasOpen
    },
  }
}

/** checkedCapacity gives the rules back, unless one could never admit the cost. */
export function checkedCapacity(set: RuleSet, cost: number): RuleSet {
  if (cost <= set.capacity) return set
  throw exceeds(set, cost)
}

function exceeds(set: RuleSet, cost: number): SluiceError {
  const rule = set.rules.find(({ capacity }) => capacity < cost)!
  return new SluiceError(
    'SLUICE_COST_EXCEEDS_CAPACITY',
    `a cost of ${cost} can never pass rule "${rule.name}", whose capacity is ${rule.capacity}. ` +
      'Split the work, or raise the limit, burst or queue.',
  )
}
