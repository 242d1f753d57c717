import { type Cost, checkCost, costAt, fits } from '../core/cost.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { type AnyKey, checkKey } from '../core/key.ts'
import { checkOptions } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import type { RuleSet } from '../stores/store.ts'
import type { Fields } from './fields.ts'
import type { CostByRule } from './key-types.ts'
import type { Waiter } from './line.ts'
import type { Policy } from './policy.ts'
import type { CallOptions } from './verbs.ts'

/** Microseconds between polls for units that another process or thread may have released. */
const POLL_US = 50_000

const CALL_OPTIONS = ['tier']
const NONE: readonly string[] = []

/** Call is a checked call: a key, the rules for it, and a cost. */
export interface Call {
  readonly set: RuleSet
  readonly key: AnyKey
  readonly cost: Cost
}

/** Gate is the entry of every verb of a limiter: it checks arguments and finds the rules. */
export interface Gate {
  /** Throws once the limiter is closed. */
  checkOpen(): void
  /** Begins a verb on a key. */
  begin(key: unknown, cost: unknown, options: CallOptions | undefined): Call
  /** Begins a verb that may be refused. Throws for a cost that could never pass. */
  beginDecision(key: unknown, cost: unknown, options: CallOptions | undefined): Call
  /** Begins a decision that holds no units. Throws if a rule holds units. */
  beginCheck(key: unknown, cost: unknown, options: CallOptions | undefined): Call
  /** Checks a whole key. */
  keyOf(key: unknown): AnyKey
  wholeKey(key: unknown): AnyKey
  /**
   * Returns a call's data for the queue. Its rules may change while it waits, so they are looked up
   * again.
   */
  inLine(
    call: Call,
    cost: unknown,
    options: CallOptions | undefined,
  ): Pick<Waiter, 'cost' | 'parts' | 'set' | 'pollUs'>
  setOf(key: AnyKey, options: CallOptions | undefined): RuleSet
  /** Returns the names of fields that are null. */
  offIn(key: AnyKey): readonly string[]
  /** Checks a given cost and returns it for these rules. */
  costOf(set: RuleSet, cost: unknown): Cost
  /** Closes it; false if it was closed before. */
  close(): boolean
}

/**
 * createGate creates the gate of a limiter with a list of rules or a policy. `fields` are those of
 * its keys, and `penalty` counts refusals. The gate occupies the limiter's name until it is closed.
 */
export function createGate(
  name: string,
  rules: readonly Rule[] | Policy,
  fields: Fields | undefined,
  penalty: Rule | undefined,
  use: (rules: readonly Rule[], off: readonly string[]) => RuleSet,
  useName: () => () => void,
): Gate {
  const policy = 'rulesFor' in rules ? rules : undefined
  const only = 'rulesFor' in rules ? undefined : rules
  const sets = new WeakMap<readonly Rule[], Map<string, RuleSet>>()
  const names = new Set((policy?.ruleLists ?? [only!]).flat().map((rule) => rule.name))
  const tierField = policy?.tierBy === undefined ? 0 : (fields?.names.indexOf(policy.tierBy) ?? 0)
  const onlySet = only && use(penalty ? [...only, penalty] : only, [])
  let closed = false
  const freeName = useName()

  /** Returns the set of the rules in force: rules of a null field are off. */
  function setFor(rules: readonly Rule[], key: AnyKey): RuleSet {
    const off = offIn(key)
    const name = off.join()
    const known = sets.get(rules) ?? new Map<string, RuleSet>()
    const set = known.get(name)
    if (set) return set
    const all = penalty ? [...rules, penalty] : rules
    const isOn = ({ by }: Rule) => by === undefined || !off.includes(by)
    const made = use(off.length > 0 ? all.filter(isOn) : all, off)
    sets.set(rules, known.set(name, made))
    return made
  }

  function offIn(key: AnyKey): readonly string[] {
    if (typeof key === 'string' || !key.includes(null)) return NONE
    return fields!.names.filter((_, i) => key[i] === null)
  }

  function setOf(key: AnyKey, options: CallOptions | undefined): RuleSet {
    if (options !== undefined) checkTier(options)
    if (onlySet !== undefined && (typeof key === 'string' || !key.includes(null))) return onlySet
    if (policy === undefined) return setFor(only!, key)
    const own = typeof key === 'string' ? key : key[tierField]
    if (own === null) return setFor(policy.rulesFor('', policy.shownTier), key)
    return setFor(policy.rulesFor(own, options?.tier ?? undefined), key)
  }

  function checkTier({ tier }: CallOptions): void {
    if (tier === undefined || tier === null || (policy && typeof tier === 'string')) return
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

  function costOf(set: RuleSet, cost: unknown): Cost {
    if (cost === 1) return cost
    if (typeof cost !== 'object' || cost === null) {
      checkCost(cost)
      return cost
    }
    return costByRule(set, cost as CostByRule)
  }

  /** Converts an object of units by rule name to units per rule of the set. */
  function costByRule({ rules }: RuleSet, given: CostByRule): Cost {
    for (const name in given) {
      // An override may have added other names since.
      if (!names.has(name) && !rules.some((rule) => rule.name === name)) {
        throw unknownRule(name, names)
      }
    }
    const costs = rules.map((rule) => {
      const units = Object.hasOwn(given, rule.name) ? given[rule.name] : undefined
      if (units === undefined && rule.algorithm.cells(rule) === 0) return 0
      if (units === undefined) throw missingRule(rule.name)
      checkCost(units)
      return units
    })
    return costs.length === 1 ? costs[0] : costs
  }

  function begin(key: unknown, cost: unknown, options: CallOptions | undefined): Call {
    checkOpen()
    if (options !== undefined) checkOptions('options of a call', options, CALL_OPTIONS)
    const own = readKey(key)
    const set = setOf(own, options)
    return { set, key: own, cost: costOf(set, cost) }
  }

  function readKey(key: unknown): AnyKey {
    if (fields) return fields.read(key)
    checkKey(key)
    return key
  }

  function beginDecision(key: unknown, cost: unknown, options: CallOptions | undefined): Call {
    const call = begin(key, cost, options)
    checkFits(call.set, call.cost)
    return call
  }

  return {
    checkOpen,
    begin,
    beginDecision,
    beginCheck(key, cost, options) {
      const call = beginDecision(key, cost, options)
      if (call.set.holds) throw needsAcquire(call.set)
      return call
    },
    keyOf(key) {
      checkOpen()
      if (fields) return fields.readPart(key)
      checkKey(key)
      return key
    },
    wholeKey(key) {
      checkOpen()
      return readKey(key)
    },
    inLine: (call, cost, options) => ({
      // With units per rule, the wait of later calls cannot be predicted.
      cost: typeof call.cost === 'number' ? call.cost : 0,
      parts: partsOf(call.key),
      set() {
        const set = setOf(call.key, options)
        checkFits(set, costOf(set, cost))
        return set
      },
      pollUs({ rules }) {
        const isHeld = ({ algorithm }: Rule, i: number) =>
          algorithm.holds && rules[i]?.retryAfterMs > 0
        return setOf(call.key, options).rules.some(isHeld) ? POLL_US : Number.POSITIVE_INFINITY
      },
    }),
    setOf,
    offIn,
    costOf,
    close() {
      const wasOpen = !closed
      closed = true
      if (wasOpen) freeName()
      return wasOpen
    },
  }
}

/** lineOf returns the name of the queue for calls with this key. */
export function lineOf(key: AnyKey): string {
  return typeof key === 'string' ? key : JSON.stringify(key)
}

/** partsOf returns the parts of a key. Queues that share a part wait for the same units. */
export function partsOf(key: AnyKey): string[] {
  if (typeof key === 'string') return [key]
  return key.flatMap((value, field) => (value === null ? [] : [`${field}:${value}`]))
}

/**
 * ratesOnly returns a cost without units of rules that hold: these are neither charged nor
 * refunded.
 */
export function ratesOnly({ rules, holds }: RuleSet, cost: Cost): Cost {
  if (!holds) return cost
  const rates = rules.map(({ algorithm }, i) => (algorithm.holds ? 0 : costAt(cost, i)))
  return rates.length === 1 ? rates[0] : rates
}

/** checkFits throws if a rule could never admit the cost. */
function checkFits(set: RuleSet, cost: Cost): void {
  if (!fits(cost, set)) throw exceeds(set, cost)
}

function exceeds(set: RuleSet, cost: Cost): SluiceError {
  const units = (i: number) => (typeof cost === 'number' ? cost : cost[i])
  const i = set.rules.findIndex(({ capacity }, place) => capacity < units(place))
  const { name, capacity } = set.rules[i]
  return new SluiceError(
    'SLUICE_COST_EXCEEDS_CAPACITY',
    `a cost of ${units(i)} can never pass rule "${name}", whose capacity is ${capacity}. ` +
      'Split the work, or raise the limit, burst or queue.',
  )
}

function unknownRule(name: string, names: ReadonlySet<string>): SluiceError {
  const hint = CALL_OPTIONS.includes(name) ? ' Options are the third argument.' : ''
  return new SluiceError(
    'SLUICE_COST',
    `cost: no rule is called ${shown(name)}. The rules are: ${[...names].join(', ')}.${hint}`,
  )
}

function missingRule(name: string): SluiceError {
  return new SluiceError(
    'SLUICE_COST',
    `cost: rule "${name}" is missing. Give units for every rule; 0 spends nothing of one.`,
  )
}

/** Returns the error for a verb without a permit that was called with a rule that holds units. */
function needsAcquire({ rules }: RuleSet): SluiceError {
  const { name } = rules.find(({ algorithm }) => algorithm.holds)!
  return new SluiceError(
    'SLUICE_NEEDS_ACQUIRE',
    `rule "${name}" holds units until they are released. Use tryAcquire(), acquire() or run(), which ` +
      'give a permit to release; peek() shows what is held.',
  )
}
