import type { Decision } from '../core/decision.ts'
import { SluiceError } from '../core/errors.ts'
import { type AnyKey, isKey } from '../core/key.ts'
import type { Rule } from '../core/rule.ts'
import { openJointTable } from '../stores/joint/joint-table.ts'
import type { RuleSet, Table } from '../stores/store.ts'
import { fieldsOf } from './fields.ts'
import { type Call, createGate, partsOf } from './gate.ts'
import type { CostByRule } from './key-types.ts'
import { storeOf } from './limiter-options.ts'
import { penaltyOf } from './penalty.ts'
import { createOpenPermits } from './permit.ts'
import { isPolicy, type Policy, ruleList } from './policy.ts'
import { checkRequests } from './requests.ts'
import { noteRules } from './rules-of.ts'
import { unusedName } from './store-name.ts'
import { lineVerbs } from './sync-lines.ts'
import { upkeepVerbs } from './sync-upkeep.ts'
import type { CallOptions, Limiter, LimiterOptions } from './verbs.ts'
import { createWaitQueue } from './wait-queue.ts'

/** createSyncLimiter is the `createLimiter` of synchronous stores. */
export function createSyncLimiter(
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
  const { begin, beginCheck, beginDecision, checkOpen, setOf } = gate
  const { decide, nowUs } = table
  const line = createWaitQueue(store.clock, nowUs)
  const open = createOpenPermits(nowUs)
  /** The rules of every plain call; undefined if closed, or if calls need more than a decision. */
  let quick = policy || fields || penalty || onDecision ? undefined : setOf('', undefined)
  if (quick?.delays || quick?.holds) quick = undefined

  function report(decision: Decision, key: string, cost: number | CostByRule): Decision {
    onDecision?.(decision, key, cost as number)
    return decision
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

  /**
   * Decides and spends. A refusal counts towards the penalty; a block that it causes is returned at
   * once.
   */
  function decideCall({ set, key, cost }: Call, atUs?: number): Decision {
    if (set.penalty === undefined) return decide(set, key, cost, true, atUs)
    // One instant for all steps: a moment later the rules might admit what was not spent.
    const us = atUs ?? nowUs()
    const decision = decide(set, key, cost, true, us)
    if (decision.allowed) return decision
    table.punish(set, key, cost, us)
    const told = decide(set, key, cost, false, us)
    // Another thread may have refunded units meanwhile.
    return told.allowed ? decision : told
  }

  function wake(key: AnyKey): void {
    for (const part of partsOf(key)) line.wake(part)
  }

  const parts = { table, gate, line, open, policy, fields, decideCall, report, wake }

  function close(): void {
    if (!gate.close()) return
    quick = undefined
    line.close(new SluiceError('SLUICE_CLOSED', `the limiter "${name}" was closed.`))
  }

  const limiter: Limiter = {
    name,

    allow(key, cost = 1, options) {
      // Fast path for nearly all calls.
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

    ...lineVerbs(parts),
    ...upkeepVerbs(parts),
    stats: () => ({ ...table.stats(), held: open.count() }),
    close,
    [Symbol.dispose]: close,
  }
  return noteRules(limiter, (key, options) => begin(key, 0, options).set.rules)
}

/** Returns the error for allow() with a leaky bucket, which may delay requests. */
function delays(): SluiceError {
  return new SluiceError(
    'SLUICE_ALLOW_DELAYS',
    'allow() would hide the delay of a leaky bucket. Use check() and hold the request for ' +
      'delayMs, or wait().',
  )
}
