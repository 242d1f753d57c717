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

/** Verdict is the part of a decision that a simulation needs. */
export interface Verdict {
  readonly allowed: boolean
  readonly delayMs: number
  /** Infinity for a cost that can never pass. */
  readonly retryAfterMs: number
  /** The rule that refused. */
  readonly rule: string
}

/** Proposal is one set of rules or a configuration, with its decision on each request. */
export interface Proposal {
  readonly name: string
  /** Decides and spends at the current time of its clock. */
  decide(request: LogRequest): Verdict
  /** The tier, route and cost under which a request is counted. */
  placeOf(request: LogRequest): Place
  /** States evicted because there were more clients than it could hold. */
  evictions(): number
  /** Settings of the configuration that the simulation ignores. */
  readonly leftOut: readonly string[]
}

/** Place is the tier, route and cost under which a request is counted. */
export interface Place {
  /** The tier of its client; undefined without tiers. */
  readonly tier: string | undefined
  /** The name of its route; undefined without routes. */
  readonly route: string | undefined
  /**
   * How its route treats decisions: `limited` refuses, `shadow` lets through, `open` counts
   * nothing; `lost` is a request that matches no route and gets a 404 or 400.
   */
  readonly mode: 'limited' | 'shadow' | 'open' | 'lost'
  /** The cost that is counted; 0 if nothing is. */
  readonly cost: number
}

/** ProposalOptions say where the states are kept. */
export interface ProposalOptions {
  readonly clock: Clock
  /** The largest number of keys. */
  readonly maxKeys: number
}

/** ALLOWED is the verdict on a request that passes at once. */
export const ALLOWED: Verdict = { allowed: true, delayMs: 0, retryAfterMs: 0, rule: '' }

/** NEVER is the rule name under which costs above a capacity are counted. */
export const NEVER = 'cost above capacity'

/**
 * parseProposal reads comma-separated rules, such as `'5/1s, 1000/1d fixed-window'`: all of them
 * must allow a request. Rules that would have the same default name get a number.
 */
export function parseProposal(text: string): readonly Rule[] {
  const taken = new Set<string>()
  return text.split(',').map((part) => {
    const rule = parseRule(part)
    let { name } = rule
    for (let i = 2; taken.has(name); i += 1) name = `${rule.name}-${i}`
    taken.add(name)
    // Equal names from the user are an error of the limiter.
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

/** Ask makes a decision for a key. */
type Ask = (limiter: Limiter, key: string, cost: number, tier: string | undefined) => Verdict

/** askOf returns the fastest way to decide: `allow` builds no decision, but hides delays. */
export function askOf(rules: readonly Rule[]): Ask {
  const quick = !rules.some(({ algorithm }) => algorithm.delays)
  return (limiter, key, cost, tier) => {
    const options = tier === undefined ? undefined : { tier }
    try {
      if (!quick) return limiter.check(key, cost, options)
      // A refusal changes nothing, so a peek returns the reason.
      return limiter.allow(key, cost, options) ? ALLOWED : limiter.peek(key, cost, options)
    } catch (error) {
      if ((error as SluiceError).code !== 'SLUICE_COST_EXCEEDS_CAPACITY') throw error
      return { allowed: false, delayMs: 0, retryAfterMs: Number.POSITIVE_INFINITY, rule: NEVER }
    }
  }
}

/** onSmallest uses the store for millions of keys, or else the one that supports every rule. */
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

// Copies the key, because a slice would keep its whole block alive in the memory store.
function ownCopy(key: string): string {
  const encoding = Buffer.byteLength(key) === key.length ? 'latin1' : 'utf16le'
  return Buffer.from(key, encoding).toString(encoding)
}
