import {
  type Clock,
  compactStore,
  createLimiter,
  type Limiter,
  memoryStore,
  parseRule,
  type Rule,
  SluiceError,
  type Store,
} from 'sluice'
import { createLimits, noAssignments } from '../limits.ts'
import type { Settings } from '../settings.ts'
import type { Request } from './request.ts'

/** Verdict is what a simulation needs of a decision. */
export interface Verdict {
  readonly allowed: boolean
  readonly delayMs: number
  /** Infinity for a cost that no retry could ever pass. */
  readonly retryAfterMs: number
  /** The rule that refused. */
  readonly rule: string
}

/** RuleSet is one proposal: what it would answer to each request. */
export interface RuleSet {
  readonly name: string
  /** Decides and spends, at the time of the clock it was made with. */
  decide(request: Request): Verdict
  /** The tier to count a request under; undefined when nothing is known of tiers. */
  tierOf(request: Request): string | undefined
  /** Whether the route of a request refuses nobody, whatever is decided. */
  isShadow(request: Request): boolean
  /** States that had to go because there were more clients than it could hold. */
  evictions(): number
}

/** RuleSetOptions are where the states are kept. */
export interface RuleSetOptions {
  readonly clock: Clock
  /** Keys held at most. */
  readonly maxKeys: number
}

const ALLOWED: Verdict = { allowed: true, delayMs: 0, retryAfterMs: 0, rule: '' }

/** NEVER is the name under which a cost above the capacity of a rule is counted. */
export const NEVER = 'cost above capacity'

/** The tier under which clients with rules of their own are counted. */
const OVERRIDE = 'override'

/**
 * parseRuleSet reads rules with a comma between, such as `'5/1s, 1000/1d fixed-window'`: all of
 * them must allow a request. Those that would have the same name get a number.
 */
export function parseRuleSet(text: string): readonly Rule[] {
  const taken = new Set<string>()
  return text.split(',').map((part) => {
    const rule = parseRule(part)
    let { name } = rule
    for (let i = 2; taken.has(name); i += 1) name = `${rule.name}-${i}`
    taken.add(name)
    // Two that the user gave one name are told of by the limiter.
    return name === rule.name || / name /.test(part) ? rule : parseRule(`${part} name ${name}`)
  })
}

/** createRuleSet is the production limiter with these rules. */
export function createRuleSet(name: string, rules: readonly Rule[], options: RuleSetOptions) {
  const { made: limiter, own } = onSmallest(options, (store) => createLimiter(rules, { store }))
  const ask = askOf(rules)
  return {
    name,
    decide: ({ key, cost }) => ask(limiter, own(key), cost, undefined),
    tierOf: ({ tier }) => tier,
    isShadow: () => false,
    evictions: () => limiter.stats().evictions,
  } satisfies RuleSet
}

/**
 * createConfigRuleSet is what the service makes of a configuration: tiers, clients, overrides, and
 * the rules of a route where the log names one. The tier of a log is that of the configuration of
 * its day: it counts with `trustsTier` only, or for a client that the configuration does not name
 * and that was asked about over the API, which may name a tier.
 */
export function createConfigRuleSet(
  name: string,
  settings: Settings,
  options: RuleSetOptions,
  trustsTier = false,
): RuleSet {
  const events = { onDegraded() {}, onRecovered() {} }
  const { made, own } = onSmallest(options, (store) =>
    createLimits(settings, store, noAssignments, events),
  )
  const { tiers, routes, policy, all } = made
  const ask = askOf([
    ...Object.values(settings.tiers).flat(),
    ...Object.values(settings.overrides).flat(),
    ...settings.routes.flatMap(({ rules }) => rules ?? []),
  ])
  const open = new Set(settings.routes.filter(({ isOpen }) => isOpen).map(({ name }) => name))
  const shadow = new Set(settings.routes.filter((route) => route.shadow).map(({ name }) => name))
  const isNamed = (key: string) =>
    Object.hasOwn(settings.clients, key) || Object.hasOwn(settings.overrides, key)
  function known({ key, tier, route }: Request): string | undefined {
    if (tier === undefined || !Object.hasOwn(settings.tiers, tier)) return undefined
    return trustsTier || (route === '' && !isNamed(key)) ? tier : undefined
  }
  return {
    name,
    decide(request) {
      const { key, cost, route } = request
      if (route) {
        if (open.has(route)) return ALLOWED
        const limiter = routes.get(route)
        if (limiter) return ask(limiter as Limiter, own(key), cost, undefined)
      }
      return ask(tiers as Limiter, own(key), cost, known(request))
    },
    tierOf: (request) =>
      Object.hasOwn(settings.overrides, request.key)
        ? OVERRIDE
        : (known(request) ?? policy.tierOf(request.key)),
    isShadow: ({ route }) => route !== undefined && shadow.has(route),
    evictions: () =>
      [...all.values()].reduce((sum, limiter) => sum + (limiter as Limiter).stats().evictions, 0),
  }
}

type Ask = (limiter: Limiter, key: string, cost: number, tier: string | undefined) => Verdict

/** The quickest way to ask: `allow` builds no decision, but hides delays. */
function askOf(rules: readonly Rule[]): Ask {
  const quick = !rules.some(({ algorithm }) => algorithm.delays)
  return (limiter, key, cost, tier) => {
    const options = tier === undefined ? undefined : { tier }
    try {
      if (!quick) return limiter.check(key, cost, options)
      // A refusal changed nothing, so that looking again tells why.
      return limiter.allow(key, cost, options) ? ALLOWED : limiter.peek(key, cost, options)
    } catch (error) {
      if ((error as SluiceError).code !== 'SLUICE_COST_EXCEEDS_CAPACITY') throw error
      return { allowed: false, delayMs: 0, retryAfterMs: Number.POSITIVE_INFINITY, rule: NEVER }
    }
  }
}

/** Makes it on a store for millions of keys, or else on the one that holds every rule. */
function onSmallest<T>(
  options: RuleSetOptions,
  make: (store: Store) => T,
): { made: T; own: (key: string) => string } {
  try {
    return { made: make(compactStore(options)), own: (key) => key }
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== 'SLUICE_RULE_UNSUPPORTED') throw error
    return { made: make(memoryStore(options)), own: ownCopy }
  }
}

// A key is a slice, and the memory store keeps it, and with it the block that it was cut from.
function ownCopy(key: string): string {
  const encoding = Buffer.byteLength(key) === key.length ? 'latin1' : 'utf16le'
  return Buffer.from(key, encoding).toString(encoding)
}
