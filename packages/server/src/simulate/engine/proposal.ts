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
import type { LogRequest } from '../log/request.ts'

/** Verdict is what a simulation needs of a decision. */
export interface Verdict {
  readonly allowed: boolean
  readonly delayMs: number
  /** Infinity for a cost that no retry could ever pass. */
  readonly retryAfterMs: number
  /** The rule that refused. */
  readonly rule: string
}

/** Proposal is one proposal: what it would answer to each request. */
export interface Proposal {
  readonly name: string
  /** Decides and spends, at the time of the clock it was made with. */
  decide(request: LogRequest): Verdict
  /** Where a request belongs, whatever is decided. */
  placeOf(request: LogRequest): Place
  /** States that had to go because there were more clients than it could hold. */
  evictions(): number
  /** What of a configuration is not looked at. */
  readonly leftOut: readonly string[]
}

/** Place is what a request is counted under. */
export interface Place {
  /** The tier of its client; undefined when nothing is known of tiers. */
  readonly tier: string | undefined
  /** The name of its route; undefined when nothing is known of routes. */
  readonly route: string | undefined
  /**
   * What its route makes of decisions: `limited` refuses, `shadow` lets through, `open` counts
   * nothing; `lost` is a request that no route is meant for, answered with 404 or 400.
   */
  readonly mode: 'limited' | 'shadow' | 'open' | 'lost'
  /** What is counted: 0 where nothing is. */
  readonly cost: number
}

/** ProposalOptions are where the states are kept. */
export interface ProposalOptions {
  readonly clock: Clock
  /** Keys held at most. */
  readonly maxKeys: number
}

/** ALLOWED is the verdict on what passes at once. */
export const ALLOWED: Verdict = { allowed: true, delayMs: 0, retryAfterMs: 0, rule: '' }

/** NEVER is the name under which a cost above the capacity of a rule is counted. */
export const NEVER = 'cost above capacity'

/**
 * parseProposal reads rules with a comma between, such as `'5/1s, 1000/1d fixed-window'`: all of
 * them must allow a request. Those that would have the same name get a number.
 */
export function parseProposal(text: string): readonly Rule[] {
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

/** createProposal is the production limiter with these rules. */
export function createProposal(name: string, rules: readonly Rule[], options: ProposalOptions) {
  const { made: limiter, own } = onSmallest(options, (store) => createLimiter(rules, { store }))
  const ask = askOf(rules)
  return {
    name,
    decide: ({ key, cost }) => ask(limiter, own(key), cost, undefined),
    placeOf: ({ tier, cost }) => ({ tier, route: undefined, mode: 'limited', cost }),
    evictions: () => limiter.stats().evictions,
    leftOut: [],
  } satisfies Proposal
}

/** Ask asks a limiter about a request of a key. */
type Ask = (limiter: Limiter, key: string, cost: number, tier: string | undefined) => Verdict

/** askOf gives the quickest way to ask: `allow` builds no decision, but hides delays. */
export function askOf(rules: readonly Rule[]): Ask {
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

/** onSmallest makes something on a store for millions of keys, or on the one that holds every rule. */
export function onSmallest<T>(
  options: ProposalOptions,
  make: (store: Store) => T,
): { made: T; own: (key: string) => string } {
  try {
    return { made: make(compactStore({ ...options, perProcess: true })), own: (key) => key }
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== 'SLUICE_RULE_UNSUPPORTED') throw error
    return { made: make(memoryStore({ ...options, perProcess: true })), own: ownCopy }
  }
}

// A key is a slice, and the memory store keeps it, and with it the block that it was cut from.
function ownCopy(key: string): string {
  const encoding = Buffer.byteLength(key) === key.length ? 'latin1' : 'utf16le'
  return Buffer.from(key, encoding).toString(encoding)
}
