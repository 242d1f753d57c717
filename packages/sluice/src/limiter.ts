import type { Clock } from './clock.ts'
import { checkCost } from './cost.ts'
import { type Decision, decisionOf } from './decision.ts'
import { CENTURY_MS, type Duration, durationUs } from './duration.ts'
import { SluiceError, shown } from './errors.ts'
import { checkKey } from './key.ts'
import { checkFunction, checkOptions, checkWhole } from './options.ts'
import { isPolicy, type Policy, ruleList } from './policy.ts'
import { checkName, type Rule } from './rule.ts'
import { memoryStore } from './stores/memory.ts'
import type { RuleSet, Store, TableStats } from './stores/store.ts'
import { createWaitQueue } from './wait-queue.ts'

export interface LimiterOptions {
  /** Where states live. Default: a `memoryStore()` of its own. */
  readonly store?: Store
  /** Part of a state's identity: limiters that share a store need different names. */
  readonly name?: string
  /** For the default store; with a store of your own, give the clock to that. */
  readonly clock?: Clock
  /**
   * Called with every decision of `allow`, `check`, `checkMany` and `wait`, after it was made. What
   * it throws reaches the caller of the verb.
   */
  readonly onDecision?: (decision: Decision, key: string, cost: number) => void
}

const CALL_OPTIONS = ['tier']
const REQUEST_OPTIONS = ['key', 'cost', 'tier']
const WAIT_OPTIONS = ['signal', 'maxWaitMs', 'maxWaiting', 'tier']

/** How many keys of `checkMany` are announced to the table at a time. */
const BATCH = 64

/** CallOptions go with a single call. */
export interface CallOptions {
  /** The key's tier where it is known from elsewhere; only with a policy. */
  readonly tier?: string
}

export interface WaitOptions extends CallOptions {
  /** Gives up; the promise rejects with the signal's reason and nothing more is spent. */
  readonly signal?: AbortSignal
  /** Refused at once when the known wait is longer. Default 30,000; `'30s'` does as well. */
  readonly maxWaitMs?: Duration
  /** Calls that may be in line for this key, this one not counted. Default 1,000. */
  readonly maxWaiting?: number
}

export interface Request extends CallOptions {
  readonly key: string
  /** Default 1. */
  readonly cost?: number
}

/** Entry is a key that is not fresh, and what `peek` says of it. */
export interface Entry {
  readonly key: string
  readonly decision: Decision
}

/**
 * Limiter decides for any key whether it may go ahead now. Several rules are one decision: all
 * take, or none does. A refusal changes nothing. Keys are strings of 1 to 1,024 UTF-16 units;
 * costs are whole numbers up to 10,000,000; a cost above a rule's capacity throws, since no
 * waiting could help.
 */
export interface Limiter {
  readonly name: string
  /** Decides and spends, answering yes or no: the fast path. Not for leaky buckets. */
  allow(key: string, cost?: number, options?: CallOptions): boolean
  /** Decides and spends. Cost 0 spends nothing and is refused only by a block or debt. */
  check(key: string, cost?: number, options?: CallOptions): Decision
  /** What `check` would answer, spending nothing; `remaining` and `resetAfterMs` as they stand. */
  peek(key: string, cost?: number, options?: CallOptions): Decision
  /** Independent decisions in order, at one instant. Nothing is spent if any request is invalid. */
  checkMany(requests: readonly Request[]): Decision[]
  /**
   * Waits its turn, first come first served among the `wait` calls for the key, and the delay of a
   * leaky bucket. Resolves to a refusal at once when the known wait is too long.
   */
  wait(key: string, cost?: number, options?: WaitOptions): Promise<Decision>
  /** Debits whatever remains, and may leave debt that has to refill first. */
  charge(key: string, cost: number, options?: CallOptions): void
  /** Undoes a recent spend, as far as there is something to undo; never makes more than fresh. */
  refund(key: string, cost: number, options?: CallOptions): void
  /** Refuses the key for a while, whatever its rules say; a later call replaces an earlier one. */
  block(key: string, duration: Duration): void
  unblock(key: string): void
  /** Makes the key fresh and lifts its block. */
  reset(key: string): void
  /** Makes every key fresh and lifts every block. */
  clear(): void
  /** The keys that are blocked or not fresh. */
  entries(): Iterable<Entry>
  /** How many keys are blocked or not fresh. Looks at every key. */
  size(): number
  stats(): TableStats
  /** Ends the limiter: those in line are rejected, and further calls throw `SLUICE_CLOSED`. */
  close(): void
  [Symbol.dispose](): void
}

/**
 * createLimiter makes a limiter from one rule, several, or a policy of tiers. Without a store it
 * keeps its states in memory.
 */
export function createLimiter(
  rules: Rule | readonly Rule[] | Policy,
  options: LimiterOptions = {},
): Limiter {
  checkOptions('createLimiter', options, ['store', 'name', 'clock', 'onDecision'])
  const { name = 'default', onDecision } = options
  checkName('createLimiter: name', name)
  checkFunction('createLimiter: onDecision', onDecision)
  const store = storeOf(options)
  const policy = isPolicy(rules) ? rules : undefined
  const lists = policy ? policy.ruleLists : [ruleList('createLimiter', rules)]
  const table = store.open(name, lists)
  const only = policy ? undefined : table.use(lists[0])
  const sets = new WeakMap<readonly Rule[], RuleSet>()
  const line = createWaitQueue(store.clock, table.nowUs)
  let closed = false

  function setOf(key: string, options: CallOptions | undefined): RuleSet {
    if (options !== undefined) checkTier(options)
    if (policy === undefined) return only!
    return setFor(policy.rulesFor(key, options?.tier))
  }

  function setFor(rules: readonly Rule[]): RuleSet {
    let set = sets.get(rules)
    if (!set) {
      set = table.use(rules)
      sets.set(rules, set)
    }
    return set
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

  /** Every verb about a key begins here: checks what came, and gives the rules that hold. */
  function begin(key: string, cost: number, options: CallOptions | undefined): RuleSet {
    checkOpen()
    checkKey(key)
    checkCost(cost)
    if (options !== undefined) checkOptions('options of a call', options, CALL_OPTIONS)
    return setOf(key, options)
  }

  /** The same for verbs that may be refused. */
  function beginDecision(key: string, cost: number, options: CallOptions | undefined): RuleSet {
    return checkedCapacity(begin(key, cost, options), cost)
  }

  function decide(set: RuleSet, key: string, cost: number, nowUs: number, spend: boolean) {
    table.decide(set, key, cost, nowUs, spend)
    return decisionOf(set.rules, set.figures)
  }

  function report(decision: Decision, key: string, cost: number): Decision {
    onDecision?.(decision, key, cost)
    return decision
  }

  /** The rules to list a key under: those that hold, else those it was last used with. */
  function listedSet(key: string): RuleSet {
    if (!policy || policy.knows(key)) return setOf(key, undefined)
    const rules = table.rulesOf(key)
    return rules.length > 0 ? table.use(rules) : setFor(policy.ruleLists[0])
  }

  function close(): void {
    if (closed) return
    closed = true
    line.close(new SluiceError('SLUICE_CLOSED', `the limiter "${name}" was closed.`))
  }

  return {
    name,

    allow(key, cost = 1, options) {
      const set = beginDecision(key, cost, options)
      if (set.delays) throw delays()
      if (onDecision === undefined) return table.allow(set, key, cost, table.nowUs())
      return report(decide(set, key, cost, table.nowUs(), true), key, cost).allowed
    },

    check(key, cost = 1, options) {
      const set = beginDecision(key, cost, options)
      return report(decide(set, key, cost, table.nowUs(), true), key, cost)
    },

    peek(key, cost = 1, options) {
      const set = beginDecision(key, cost, options)
      return decide(set, key, cost, table.nowUs(), false)
    },

    checkMany(requests) {
      checkOpen()
      if (!Array.isArray(requests)) {
        throw new SluiceError(
          'SLUICE_OPTION',
          `checkMany takes an array of { key, cost }, got ${shown(requests)}.`,
        )
      }
      // Read once each: what was checked is what is spent, even from an object with getters.
      const keys: string[] = []
      const costs: number[] = []
      const sets: RuleSet[] = []
      for (const request of requests as readonly Request[]) {
        checkOptions('checkMany', request, REQUEST_OPTIONS)
        const { key, cost = 1, tier } = request
        sets.push(beginDecision(key, cost, tier === undefined ? undefined : { tier }))
        keys.push(key)
        costs.push(cost)
      }
      const nowUs = table.nowUs()
      const decisions: Decision[] = []
      for (let i = 0; i < keys.length; i += 1) {
        if (i % BATCH === 0) table.expect(keys.slice(i, i + BATCH))
        decisions.push(decide(sets[i], keys[i], costs[i], nowUs, true))
      }
      if (onDecision) decisions.forEach((decision, i) => void report(decision, keys[i], costs[i]))
      return decisions
    },

    async wait(key, cost = 1, options = {}) {
      checkOptions('wait', options, WAIT_OPTIONS)
      const { signal, maxWaitMs = 30_000, maxWaiting = 1_000, tier } = options
      const call = tier === undefined ? undefined : { tier }
      const maxWaitUs = durationUs('wait: maxWaitMs', maxWaitMs, 0, CENTURY_MS)
      checkWhole('wait: maxWaiting', maxWaiting, 0, Number.MAX_SAFE_INTEGER)
      checkSignal(signal)
      signal?.throwIfAborted()
      beginDecision(key, cost, call)
      // The rules may change while it waits, so they are looked up every time.
      const look = (spend: boolean) =>
        decide(checkedCapacity(setOf(key, call), cost), key, cost, table.nowUs(), spend)
      const decision = await line.join(key, {
        cost,
        maxWaitUs,
        maxWaiting,
        signal,
        check: () => look(true),
        knownWaitUs: (ahead) => knownWaitUs(look(false), setOf(key, call).rules, ahead, cost),
        refusal: (waitUs) => ({
          ...look(false),
          allowed: false,
          retryAfterMs: waitUs / 1_000,
          delayMs: 0,
        }),
      })
      return report(decision, key, cost)
    },

    charge(key, cost, options) {
      table.charge(begin(key, cost, options), key, cost, table.nowUs())
    },

    refund(key, cost, options) {
      table.refund(begin(key, cost, options), key, cost, table.nowUs())
      line.wake(key)
    },

    block(key, duration) {
      checkOpen()
      checkKey(key)
      const nowUs = table.nowUs()
      table.block(key, nowUs + durationUs('block: duration', duration, 0.001, CENTURY_MS), nowUs)
    },

    unblock(key) {
      checkOpen()
      checkKey(key)
      table.unblock(key)
      line.wake(key)
    },

    reset(key) {
      checkOpen()
      checkKey(key)
      table.reset(key, table.nowUs())
      line.wake(key)
    },

    clear() {
      checkOpen()
      table.clear()
      line.wakeAll()
    },

    *entries() {
      checkOpen()
      for (const key of table.keys(table.nowUs())) {
        yield { key, decision: decide(listedSet(key), key, 1, table.nowUs(), false) }
      }
    },

    size() {
      checkOpen()
      return table.size(table.nowUs())
    },

    stats: () => table.stats(),
    close,
    [Symbol.dispose]: close,
  }
}

/** The least microseconds until `cost` passes, or its slot comes, with `ahead` units before it. */
function knownWaitUs(
  { allowed, retryAfterMs, delayMs, rules: each }: Decision,
  rules: readonly Rule[],
  ahead: number,
  cost: number,
): number {
  let known = Math.round((allowed ? delayMs : retryAfterMs) * 1_000)
  for (let i = 0; i < rules.length; i += 1) {
    const rule = rules[i]
    const waitUs = Math.round(each[i].retryAfterMs * 1_000)
    const resetUs = Math.round(each[i].resetAfterMs * 1_000)
    const { remaining } = each[i]
    const line = rule.algorithm.lineUs(rule, waitUs, resetUs, remaining, ahead, cost)
    if (line > known) known = line
  }
  return known
}

function checkSignal(signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return
  throw new SluiceError(
    'SLUICE_OPTION',
    `wait: signal must be an AbortSignal, got ${shown(signal)}.`,
  )
}

/** checkedCapacity gives the rules back, unless one could never admit the cost. */
function checkedCapacity(set: RuleSet, cost: number): RuleSet {
  if (cost <= set.capacity) return set
  throw exceeds(set, cost)
}

function storeOf({ store, clock }: LimiterOptions): Store {
  if (store === undefined) return memoryStore({ clock })
  if (clock !== undefined) {
    throw new SluiceError(
      'SLUICE_OPTION',
      'createLimiter: a clock belongs to its store: memoryStore({ clock }).',
    )
  }
  if (typeof store?.open === 'function') return store
  throw new SluiceError(
    'SLUICE_OPTION',
    `createLimiter: store must be a store such as memoryStore(), got ${shown(store)}.`,
  )
}

function exceeds(set: RuleSet, cost: number): SluiceError {
  const rule = set.rules.find(({ capacity }) => capacity < cost)!
  return new SluiceError(
    'SLUICE_COST_EXCEEDS_CAPACITY',
    `a cost of ${cost} can never pass rule "${rule.name}", whose capacity is ${rule.capacity}. ` +
      'Split the work, or raise the limit, burst or queue.',
  )
}

function delays(): SluiceError {
  return new SluiceError(
    'SLUICE_ALLOW_DELAYS',
    'allow() would hide the delay of a leaky bucket. Use check() and hold the request for ' +
      'delayMs, or wait().',
  )
}
