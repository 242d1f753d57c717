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

/** Microseconds between looks for units that another process or thread may have released. */
const POLL_US = 50_000

const CALL_OPTIONS = ['tier']
const NONE: readonly string[] = []

/** Call is what a caller asks about, checked: a key, the rules that hold for it, and a cost. */
export interface Call {
  readonly set: RuleSet
  readonly key: AnyKey
  readonly cost: Cost
}

/** Gate is where every verb of a limiter begins: it checks what came, and gives the rules. */
export interface Gate {
  /** Throws once the limiter is closed. */
  checkOpen(): void
  /** For verbs about a key. */
  begin(key: unknown, cost: unknown, options: CallOptions | undefined): Call
  /** The same for verbs that may be refused: a cost that could never pass throws. */
  beginDecision(key: unknown, cost: unknown, options: CallOptions | undefined): Call
  /** The same for decisions that hold nothing. */
  beginCheck(key: unknown, cost: unknown, options: CallOptions | undefined): Call
  /** For verbs about a key or a part of one, and about a whole key. */
  keyOf(key: unknown): AnyKey
  wholeKey(key: unknown): AnyKey
  /** What a line is told of a call. The rules may change while it waits, so they are looked up again. */
  inLine(
    call: Call,
    cost: unknown,
    options: CallOptions | undefined,
  ): Pick<Waiter, 'cost' | 'parts' | 'set' | 'pollUs'>
  setOf(key: AnyKey, options: CallOptions | undefined): RuleSet
  /** The fields that are null. */
  offIn(key: AnyKey): readonly string[]
  /** A cost as it was given, for these rules. */
  costOf(set: RuleSet, cost: unknown): Cost
  /** Closes it; false if it was closed before. */
  close(): boolean
}

/**
 * createGate is for a limiter of one list of rules, or of a policy; `fields` are those of its keys, and
 * `penalty` counts their refusals. It uses the limiter's name until it is closed.
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

  /** The set of the rules that hold: those of a field that is null are off. */
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

  /** Units for each rule of the set, of an object with their names. */
  function costByRule({ rules }: RuleSet, given: CostByRule): Cost {
    for (const name in given) {
      // An override may have brought other names since.
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
      // Units for each rule say nothing of how long the calls behind must wait.
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

/** lineOf is what calls with this key wait in line under. */
export function lineOf(key: AnyKey): string {
  return typeof key === 'string' ? key : JSON.stringify(key)
}

/** partsOf are the parts of a key: lines that share one wait for the same units. */
export function partsOf(key: AnyKey): string[] {
  if (typeof key === 'string') return [key]
  return key.flatMap((value, field) => (value === null ? [] : [`${field}:${value}`]))
}

/** ratesOnly is the part of a cost that is for rates: what is held is neither charged nor given back. */
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
  return new SluiceError(
    'SLUICE_COST',
    `cost: no rule is called ${shown(name)}. There is ${[...names].join(', ')}. Options are the third ` +
      'argument.',
  )
}

function missingRule(name: string): SluiceError {
  return new SluiceError(
    'SLUICE_COST',
    `cost: rule "${name}" is missing. Give units for every rule; 0 spends nothing of one.`,
  )
}

/** A rule that holds was asked by a verb that gives no permit. */
function needsAcquire({ rules }: RuleSet): SluiceError {
  const { name } = rules.find(({ algorithm }) => algorithm.holds)!
  return new SluiceError(
    'SLUICE_NEEDS_ACQUIRE',
    `rule "${name}" holds units until they are released. Use tryAcquire(), acquire() or run(), which ` +
      'give a permit to release; peek() shows what is held.',
  )
}
