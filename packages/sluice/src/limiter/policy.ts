import { SluiceError, shown } from '../core/errors.ts'
import { checkKey } from '../core/key.ts'
import { checkFunction, checkOptions } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import type { LimiterKey } from './key-types.ts'

/** RulesByName is rules by tier name or by key: an object or a `Map`. */
export type RulesByName =
  | Readonly<Record<string, Rule | readonly Rule[]>>
  | ReadonlyMap<string, Rule | readonly Rule[]>

/** The type of tier names. Those of a `Map` are known only at run time. */
type TierIn<Tiers> =
  Tiers extends ReadonlyMap<infer Name extends string, unknown>
    ? Name
    : Extract<keyof Tiers, string>

type RuleIn<Tiers> = Tiers extends ReadonlyMap<string, infer Rules> ? Rules : Tiers[keyof Tiers]

/** PolicyOptions are the options of `createPolicy`. */
export interface PolicyOptions<Tiers extends RulesByName = RulesByName> {
  /** The rules of each tier, by its name. Use `unlimited()` for clients without limits. */
  readonly tiers: Tiers
  /**
   * Returns the tier of a key without one from `setTier`; `undefined` or `null` for the default
   * tier. Synchronous: look it up beforehand.
   */
  readonly tierOf?: (key: string) => string | undefined | null
  /** The tier of keys that get none from `setTier` or `tierOf`. Without it such keys throw. */
  readonly defaultTier?: NoInfer<TierIn<Tiers>>
  /** Rules of single keys, which replace those of their tier. */
  readonly overrides?: RulesByName
  /**
   * For keys with fields: the field that has a tier. Rules of tiers and overrides count that
   * field; `tierOf`, `setTier` and `setOverride` get its value.
   */
  readonly tierBy?: string
  /** The rules of the other fields, the same for all tiers. */
  readonly rules?: Rule | readonly Rule[]
}

/**
 * Policy selects the rules for a key. A change takes effect at the key's next request. Used units
 * carry over between rules of the same name and algorithm; other rules have separate states.
 */
export interface Policy<Key = string, Tier extends string = string> {
  /** The field of keys that has a tier; undefined if keys are strings. */
  readonly tierBy: string | undefined
  /** The key type of its limiters. Exists only as a type. */
  readonly key?: Key
  /** The rules of all tiers and overrides with which the policy was created. */
  readonly ruleLists: readonly (readonly Rule[])[]
  /** Returns the rules for a key: its override, else those of `tier`, else those of its own tier. */
  rulesFor(key: string, tier?: Tier): readonly Rule[]
  /** Tells whether the key has an override or a tier from `setTier` or `tierOf`. */
  knows(key: string): boolean
  /** The tier under which to show unknown keys: the default, else the first. */
  readonly shownTier: Tier
  /** Returns the tier of a key: from `setTier`, else from `tierOf`, else the default. */
  tierOf(key: string): Tier
  /** Assigns a key to a tier; `undefined` or `null` removes the assignment. */
  setTier(key: string, tier: Tier | undefined | null): void
  /** Gives a key its own rules; `undefined` or `null` removes them. */
  setOverride(key: string, rules: Rule | readonly Rule[] | undefined | null): void
}

const OPTIONS = ['tiers', 'tierOf', 'defaultTier', 'overrides', 'tierBy', 'rules']

const isPolicySymbol = Symbol.for('sluice.policy')

/** createPolicy creates a policy from tiers. */
export function createPolicy<
  const Tiers extends RulesByName,
  const Others extends Rule | readonly Rule[] = never,
  const TierBy extends string | undefined = undefined,
>(
  options: PolicyOptions<Tiers> & { readonly rules?: Others; readonly tierBy?: TierBy },
): Policy<[TierBy] extends [string] ? LimiterKey<RuleIn<Tiers> | Others> : string, TierIn<Tiers>>
export function createPolicy(options: PolicyOptions): Policy {
  checkOptions('createPolicy', options, OPTIONS)
  const { tierOf, defaultTier, tierBy } = options
  const others = othersOf(options)
  checkFunction('createPolicy: tierOf', tierOf)
  const tiers = new Map<string, readonly Rule[]>()
  for (const [tier, rules] of rulesByName('tiers', options.tiers)) {
    tiers.set(tier, listFor(`tier ${shown(tier)}`, rules))
  }
  if (tiers.size === 0) {
    throw new SluiceError('SLUICE_OPTION', 'createPolicy: tiers must have at least one tier.')
  }
  if (defaultTier !== undefined) rulesOf(defaultTier)
  const assigned = new Map<string, string>()
  const overrides = new Map<string, readonly Rule[]>()
  if (options.overrides !== undefined) {
    for (const [key, rules] of rulesByName('overrides', options.overrides)) setOverride(key, rules)
  }
  const ruleLists = [...tiers.values(), ...overrides.values()]

  function rulesOf(tier: string): readonly Rule[] {
    const found = tiers.get(tier)
    if (found) return found
    const remedy =
      typeof tier === 'object'
        ? ' tierOf must answer at once: look the tier up first and pass it, check(key, cost, { tier }).'
        : ''
    throw new SluiceError(
      'SLUICE_TIER_UNKNOWN',
      `there is no tier ${shown(tier)}. The policy has ${[...tiers.keys()].join(', ')}.${remedy}`,
    )
  }

  function ownTier(key: string): string | undefined {
    return assigned.get(key) ?? tierOf?.(key) ?? undefined
  }

  function tierFor(key: string): string {
    const tier = ownTier(key) ?? defaultTier
    if (tier !== undefined) return tier
    throw new SluiceError(
      'SLUICE_TIER_UNKNOWN',
      `key ${shown(key)} has no tier. Pass one, assign one with setTier(), or give the policy a tierOf or defaultTier.`,
    )
  }

  function setOverride(key: string, rules: Rule | readonly Rule[] | undefined): void {
    checkKey(key)
    if (rules === undefined || rules === null) overrides.delete(key)
    else overrides.set(key, listFor(`override of ${shown(key)}`, rules))
  }

  /** Returns the rules of a tier or an override together with those of the other fields. */
  function listFor(where: string, rules: Rule | readonly Rule[]): readonly Rule[] {
    const own = ruleList(where, rules)
    const stray = own.find(({ by }) => by !== undefined && by !== tierBy)
    if (stray) throw strayField(where, stray, tierBy)
    return others.length > 0 ? ruleList(where, [...own, ...others]) : own
  }

  return {
    tierBy,
    ruleLists,
    rulesFor(key, tier) {
      if (overrides.size > 0) {
        const own = overrides.get(key)
        if (own) return own
      }
      return rulesOf(tier ?? tierFor(key))
    },
    shownTier: defaultTier ?? [...tiers.keys()][0],
    knows: (key) => overrides.has(key) || ownTier(key) !== undefined,
    tierOf: tierFor,
    setTier(key, tier) {
      checkKey(key)
      if (tier === undefined || tier === null) {
        assigned.delete(key)
      } else {
        rulesOf(tier)
        assigned.set(key, tier)
      }
    },
    setOverride,
    ...{ [isPolicySymbol]: true },
  }
}

/** Returns the rules of the fields that have no tier. */
function othersOf({ rules, tierBy }: PolicyOptions): readonly Rule[] {
  if (rules === undefined) return []
  const others = ruleList('createPolicy: rules', rules)
  const stray = others.find(({ by }) => by === undefined || by === tierBy)
  if (tierBy !== undefined && !stray) return others
  throw new SluiceError(
    'SLUICE_OPTION',
    tierBy === undefined
      ? 'createPolicy: rules are for keys with fields: give `tierBy`, the field that has a tier.'
      : `createPolicy: rule "${stray!.name}" must count another field than ${shown(tierBy)}.`,
  )
}

function strayField(where: string, { name, by }: Rule, tierBy: string | undefined): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION',
    `createPolicy: rule "${name}" of ${where} counts ${shown(by)}, not ` +
      `${tierBy === undefined ? 'the key: give the policy `tierBy`' : shown(tierBy)}. Rules of other ` +
      'fields go into `rules`.',
  )
}

function rulesByName(what: string, given: RulesByName): Iterable<[string, Rule | readonly Rule[]]> {
  if (given instanceof Map) return given
  if (shown(given) === 'an object' && !(Symbol.iterator in given)) return Object.entries(given)
  throw new SluiceError(
    'SLUICE_OPTION',
    `createPolicy: ${what} must be an object or a Map of rules, got ${shown(given)}.`,
  )
}

/** isPolicy tells whether a value is a policy. */
export function isPolicy(value: unknown): value is Policy {
  return typeof value === 'object' && value !== null && isPolicySymbol in value
}

/** ruleList returns one rule or several as a checked, frozen list. */
export function ruleList(where: string, rules: unknown): readonly Rule[] {
  const list = Array.isArray(rules) ? rules : [rules]
  if (list.length === 0) {
    throw new SluiceError('SLUICE_OPTION', `${where}: give at least one rule; unlimited() is one.`)
  }
  for (const rule of list) {
    if (typeof rule?.algorithm?.waitUs === 'function' && typeof rule.capacity === 'number') continue
    throw new SluiceError(
      'SLUICE_OPTION',
      `${where}: a rule must come from a factory such as tokenBucket() or from parseRule(), got ${shown(rule)}.`,
    )
  }
  checkNames(list)
  return Object.freeze([...list])
}

/** Throws if two rules have the same name. */
function checkNames(rules: readonly Rule[]): void {
  const seen = new Set<string>()
  for (const { name } of rules) {
    if (seen.has(name)) {
      throw new SluiceError(
        'SLUICE_RULE_DUPLICATE',
        `two rules of one limiter are called "${name}". Give each its own \`name\`.`,
      )
    }
    seen.add(name)
  }
}
