import { RECENT } from '../core/algorithm.ts'
import { type Decision, withoutDelay } from '../core/decision.ts'
import { CENTURY_MS, durationUs } from '../core/duration.ts'
import { SluiceError } from '../core/errors.ts'
import { newGeneration } from '../core/held.ts'
import { type AnyKey, isKey } from '../core/key.ts'
import type { Rule } from '../core/rule.ts'
import { openJointTable } from '../stores/joint/joint-table.ts'
import type { RuleSet, Table } from '../stores/store.ts'
import { fieldsOf, shownKey, tierKeyOf } from './fields.ts'
import { type Call, createGate, lineOf, partsOf, ratesOnly } from './gate.ts'
import type { CostByRule, LimiterCost, LimiterKey, LimiterTier } from './key-types.ts'
import { checkLimiterOptions, checkNotAsync, storeOf } from './limiter-options.ts'
import { penaltyOf } from './penalty.ts'
import {
  createOpenPermits,
  type NoPermit,
  noPermit,
  type Permit,
  permitFrom,
  reported,
  type Taken,
} from './permit.ts'
import { isPolicy, type Policy, ruleList } from './policy.ts'
import { checkRequests } from './requests.ts'
import { noteRules } from './rules-of.ts'
import { unusedName } from './store-name.ts'
import { permitOf } from './sync-permit.ts'
import type {
  AnyLimiter,
  AnyLimiterOptions,
  AsyncLimiter,
  AsyncLimiterOptions,
  CallOptions,
  Limiter,
  LimiterOptions,
} from './verbs.ts'
import { admitted, checkWait } from './wait-options.ts'
import { createWaitQueue } from './wait-queue.ts'

/**
 * createLimiter makes a limiter from one rule, several, or a policy of tiers. Without a store it
 * keeps its states in memory. On a store that answers later, all verbs are promises. If only the running
 * program knows which of both the store is, await every verb.
 */
export function createLimiter<const Rules extends Rule | readonly Rule[] | Policy<unknown>>(
  rules: Rules,
  options: AsyncLimiterOptions<LimiterKey<Rules>, LimiterCost<Rules>>,
): AsyncLimiter<LimiterKey<Rules>, LimiterCost<Rules>, LimiterTier<Rules>>
export function createLimiter<const Rules extends Rule | readonly Rule[] | Policy<unknown>>(
  rules: Rules,
  options?: LimiterOptions<LimiterKey<Rules>, LimiterCost<Rules>>,
): Limiter<LimiterKey<Rules>, LimiterCost<Rules>, LimiterTier<Rules>>
export function createLimiter<const Rules extends Rule | readonly Rule[] | Policy<unknown>>(
  rules: Rules,
  options: AnyLimiterOptions<LimiterKey<Rules>, LimiterCost<Rules>>,
): AnyLimiter<LimiterKey<Rules>, LimiterCost<Rules>, LimiterTier<Rules>>
export function createLimiter(
  rules: Rule | readonly Rule[] | Policy,
  options: LimiterOptions | AnyLimiterOptions = {},
): Limiter | AsyncLimiter {
  checkLimiterOptions(options)
  if (isAsync(options)) return options.store.createLimiter(rules, options)
  if (options.store === undefined) checkNotAsync(options)
  return createSyncLimiter(rules, options as LimiterOptions)
}

function isAsync(options: LimiterOptions | AnyLimiterOptions): options is AsyncLimiterOptions {
  return options.store?.kind === 'async'
}

function createSyncLimiter(
  rules: Rule | readonly Rule[] | Policy,
  options: LimiterOptions,
): Limiter {
  const { name = 'default', onDecision } = options
  const store = storeOf(options)
  const useName = unusedName(store, name, options.share)
  const policy = isPolicy(rules) ? rules : undefined
  const lists = policy ? policy.ruleLists : [ruleList('createLimiter', rules)]
  const fields = fieldsOf(lists.flat())
  const penalty = penaltyOf(options.penalty, fields)
  const all = penalty ? lists.map((rules) => [...rules, penalty]) : lists
  const mayChange = policy !== undefined
  const table = (
    fields
      ? openJointTable(store, name, all, fields.names, mayChange)
      : store.open(name, all, mayChange)
  ) as Table<RuleSet, AnyKey>
  const gate = createGate(name, policy ?? lists[0], fields, penalty, table.use, useName)
  const { begin, beginCheck, beginDecision, checkOpen, costOf, setOf } = gate
  const { decide, nowUs } = table
  const line = createWaitQueue(store.clock, nowUs)
  const open = createOpenPermits(nowUs)
  /** The rules of every plain call, as long as it is open and nothing else is to be done. */
  let quick = policy || fields || penalty || onDecision ? undefined : setOf('', undefined)
  if (quick?.delays || quick?.holds) quick = undefined

  function report(decision: Decision, key: string, cost: number | CostByRule): Decision {
    onDecision?.(decision, key, cost as number)
    return decision
  }

  /** The rules to list a key under: those that hold, else those it was last used with. */
  function listedSet(key: AnyKey): RuleSet {
    if (!policy || policy.knows(tierKeyOf(key))) return setOf(key, undefined)
    const rules = table.rulesOf(key)
    return rules.length > 0
      ? table.use(rules, gate.offIn(key))
      : setOf(key, { tier: policy.shownTier })
  }

  function allowAny(
    key: string,
    cost: number | CostByRule,
    options: CallOptions | undefined,
  ): boolean {
    const call = beginCheck(key, cost, options)
    if (call.set.delays) throw delays()
    if (onDecision || penalty) return report(decideCall(call), key, cost).allowed
    return table.allow(call.set, call.key, call.cost)
  }

  /** Decides and spends. A refusal counts for the penalty, and the block that it brings is told at once. */
  function decideCall({ set, key, cost }: Call, atUs?: number): Decision {
    if (set.penalty === undefined) return decide(set, key, cost, true, atUs)
    // One instant for all steps: a moment later the rules might admit what was not spent.
    const us = atUs ?? nowUs()
    const decision = decide(set, key, cost, true, us)
    if (decision.allowed) return decision
    table.punish(set, key, cost, us)
    const told = decide(set, key, cost, false, us)
    // Another thread may have given units back meanwhile.
    return told.allowed ? decision : told
  }

  function wake(key: AnyKey): void {
    for (const part of partsOf(key)) line.wake(part)
  }

  /** Decides, and gives a permit if it is admitted. */
  function acquireNow(call: Call, isCounted: boolean): Permit<never> | NoPermit {
    const { set, key, cost } = call
    const spentUs = nowUs()
    set.generation = newGeneration()
    const decision = isCounted ? decideCall(call, spentUs) : decide(set, key, cost, true, spentUs)
    if (!decision.allowed) return noPermit(decision)
    return permitOf(table, call, { decision, spentUs, open, costOf, ended: () => wake(key) })
  }

  /** Whether a call that passes at once may go without a place in line, which costs more than it does. */
  function needsNoLine({ set, key }: Call): boolean {
    return line.waiting(lineOf(key)) === 0 && !set.delays
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
      if (quick !== undefined && cost === 1 && options === undefined && isKey(key)) {
        return decide(quick, key, 1, true)
      }
      return report(decideCall(beginCheck(key, cost, options)), key, cost)
    },

    peek(key, cost = 1, options) {
      const call = beginDecision(key, cost, options)
      return decide(call.set, call.key, call.cost, false)
    },

    checkMany(requests) {
      checkOpen()
      const checked = checkRequests(requests, beginCheck)
      const atUs = nowUs()
      const decisions = checked.map(({ call }) => decideCall(call, atUs))
      decisions.forEach((decision, i) => void report(decision, checked[i].key, checked[i].cost))
      return decisions
    },

    async wait(given, cost = 1, options = {}) {
      const { call, ...limits } = checkWait('wait', options)
      const first = beginCheck(given, cost, call)
      const { key, set } = first
      if (needsNoLine(first)) {
        const decision = decide(set, key, first.cost, true)
        if (decision.allowed) return report(decision, given, cost)
      }
      const { decision } = await line.join(lineOf(key), {
        ...limits,
        ...gate.inLine(first, cost, call),
        peek: (set) => decide(set, key, costOf(set, cost), false),
        take: (set) => ({ decision: decide(set, key, costOf(set, cost), true) }),
      })
      return admitted(lineOf(key), report(withoutDelay(decision), given, cost))
    },

    waiting: (key) => line.waiting(lineOf(gate.wholeKey(key))),

    tryAcquire(key, cost = 1, options) {
      const permit = acquireNow(beginDecision(key, cost, options), true)
      return reported(permit, (decision) => report(decision, key, cost))
    },

    async acquire(given, cost = 1, options = {}) {
      const { call, ...limits } = checkWait('acquire', options)
      const first = beginDecision(given, cost, call)
      const { key } = first
      if (needsNoLine(first)) {
        const permit = acquireNow(first, false)
        if (permit.allowed) return reported(permit, (decision) => report(decision, given, cost))
      }
      const taken = await line.join<Taken<Permit<never>>>(lineOf(key), {
        ...limits,
        ...gate.inLine(first, cost, call),
        peek: (set) => decide(set, key, costOf(set, cost), false),
        take(set) {
          const permit = acquireNow({ set, key, cost: costOf(set, cost) }, false)
          return { decision: permit.decision, permit }
        },
        // What this limiter releases wakes the line.
        ...(table.isShared ? {} : { pollUs: undefined }),
        dropped: ({ permit }) => void (permit.allowed && permit.cancel()),
      })
      return permitFrom(lineOf(key), taken, (decision) => report(decision, given, cost))
    },

    async run(key, work, options = {}) {
      const { cost, ...waiting } = options
      const permit = await limiter.acquire(key, cost, waiting)
      try {
        return await work(permit)
      } finally {
        permit.release()
      }
    },

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

    stats: () => ({ ...table.stats(), held: open.count() }),
    close,
    [Symbol.dispose]: close,
  }
  return noteRules(limiter, (key, options) => begin(key, 0, options).set.rules)
}

/** allow() where a leaky bucket may hand out a delay. */
function delays(): SluiceError {
  return new SluiceError(
    'SLUICE_ALLOW_DELAYS',
    'allow() would hide the delay of a leaky bucket. Use check() and hold the request for ' +
      'delayMs, or wait().',
  )
}
