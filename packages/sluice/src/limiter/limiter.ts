import type { Decision } from '../core/decision.ts'
import { CENTURY_MS, durationUs } from '../core/duration.ts'
import { SluiceError } from '../core/errors.ts'
import { checkKey, isKey } from '../core/key.ts'
import type { Rule } from '../core/rule.ts'
import type { RuleSet } from '../stores/store.ts'
import { checkedCapacity, createGate } from './gate.ts'
import { checkLimiterOptions, checkNotAsync, storeOf } from './limiter-options.ts'
import { isPolicy, type Policy, ruleList } from './policy.ts'
import { checkRequests } from './requests.ts'
import { noteRules } from './rules-of.ts'
import type {
  AsyncLimiter,
  AsyncLimiterOptions,
  CallOptions,
  Limiter,
  LimiterOptions,
} from './verbs.ts'
import { checkWait, outlookOf } from './wait-options.ts'
import { createWaitQueue } from './wait-queue.ts'

/**
 * createLimiter makes a limiter from one rule, several, or a policy of tiers. Without a store it
 * keeps its states in memory. On a store that answers later, all verbs are promises.
 */
export function createLimiter(
  rules: Rule | readonly Rule[] | Policy,
  options: AsyncLimiterOptions,
): AsyncLimiter
export function createLimiter(
  rules: Rule | readonly Rule[] | Policy,
  options?: LimiterOptions,
): Limiter
export function createLimiter(
  rules: Rule | readonly Rule[] | Policy,
  options: LimiterOptions | AsyncLimiterOptions = {},
): Limiter | AsyncLimiter {
  checkLimiterOptions(options)
  if (isAsync(options)) return options.store.createLimiter(rules, options)
  checkNotAsync(options)
  return createSyncLimiter(rules, options)
}

function isAsync(options: LimiterOptions | AsyncLimiterOptions): options is AsyncLimiterOptions {
  return options.store?.kind === 'async'
}

function createSyncLimiter(
  rules: Rule | readonly Rule[] | Policy,
  options: LimiterOptions,
): Limiter {
  const { name = 'default', onDecision } = options
  const store = storeOf(options)
  const policy = isPolicy(rules) ? rules : undefined
  const lists = policy ? policy.ruleLists : [ruleList('createLimiter', rules)]
  const table = store.open(name, lists, policy !== undefined)
  const gate = createGate(name, policy ?? lists[0], table.use)
  const { begin, beginDecision, checkOpen, setOf } = gate
  const { decide, nowUs } = table
  const line = createWaitQueue(store.clock, nowUs)
  /** The rules of every plain `allow`, as long as it is open and nothing else is to be done. */
  let quick = policy || onDecision ? undefined : setOf('', undefined)
  if (quick?.delays) quick = undefined

  function report(decision: Decision, key: string, cost: number): Decision {
    onDecision?.(decision, key, cost)
    return decision
  }

  /** The rules to list a key under: those that hold, else those it was last used with. */
  function listedSet(key: string): RuleSet {
    if (!policy || policy.knows(key)) return setOf(key, undefined)
    const rules = table.rulesOf(key)
    return rules.length > 0 ? table.use(rules) : setOf(key, { tier: policy.shownTier })
  }

  function allowAny(key: string, cost: number, options: CallOptions | undefined): boolean {
    const set = beginDecision(key, cost, options)
    if (set.delays) throw delays()
    if (onDecision === undefined) return table.allow(set, key, cost)
    return report(decide(set, key, cost, true), key, cost).allowed
  }

  function close(): void {
    if (!gate.close()) return
    quick = undefined
    line.close(new SluiceError('SLUICE_CLOSED', `the limiter "${name}" was closed.`))
  }

  const limiter: Limiter = {
    name,

    allow(key, cost = 1, options) {
      // What nearly every call is, in few steps.
      if (quick !== undefined && cost === 1 && options === undefined && isKey(key)) {
        return table.allow(quick, key, 1)
      }
      return allowAny(key, cost, options)
    },

    check(key, cost = 1, options) {
      const set = beginDecision(key, cost, options)
      return report(decide(set, key, cost, true), key, cost)
    },

    peek(key, cost = 1, options) {
      const set = beginDecision(key, cost, options)
      return decide(set, key, cost, false)
    },

    checkMany(requests) {
      checkOpen()
      const checked = checkRequests(requests, beginDecision)
      const atUs = nowUs()
      const decisions = checked.map(({ set, key, cost }) => decide(set, key, cost, true, atUs))
      decisions.forEach((decision, i) => void report(decision, checked[i].key, checked[i].cost))
      return decisions
    },

    async wait(key, cost = 1, options = {}) {
      const { call, ...limits } = checkWait(options)
      beginDecision(key, cost, call)
      // The rules may change while it waits, so they are looked up every time.
      const look = (spend: boolean) =>
        decide(checkedCapacity(setOf(key, call), cost), key, cost, spend)
      const decision = await line.join(key, {
        cost,
        ...limits,
        check: () => look(true),
        outlook: (ahead) => outlookOf(look(false), setOf(key, call).rules, ahead, cost),
      })
      return report(decision, key, cost)
    },

    charge(key, cost, options) {
      table.charge(begin(key, cost, options), key, cost, nowUs())
    },

    refund(key, cost, options) {
      table.refund(begin(key, cost, options), key, cost, nowUs())
      line.wake(key)
    },

    block(key, duration) {
      checkOpen()
      checkKey(key)
      const atUs = nowUs()
      table.block(key, atUs + durationUs('block: duration', duration, 0.001, CENTURY_MS), atUs)
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
      table.reset(key, nowUs())
      line.wake(key)
    },

    clear() {
      checkOpen()
      table.clear()
      line.wakeAll()
    },

    *entries() {
      checkOpen()
      for (const key of table.keys(nowUs())) {
        yield { key, decision: decide(listedSet(key), key, 1, false) }
      }
    },

    size() {
      checkOpen()
      return table.size(nowUs())
    },

    stats: () => table.stats(),
    close,
    [Symbol.dispose]: close,
  }
  return noteRules(limiter, (key, options) => setOf(key, options).rules)
}

/** allow() where a leaky bucket may hand out a delay. */
function delays(): SluiceError {
  return new SluiceError(
    'SLUICE_ALLOW_DELAYS',
    'allow() would hide the delay of a leaky bucket. Use check() and hold the request for ' +
      'delayMs, or wait().',
  )
}
