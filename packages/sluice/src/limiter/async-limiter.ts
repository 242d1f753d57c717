import { steadyClock } from '../core/clock.ts'
import { type Decision, withoutDelay } from '../core/decision.ts'
import { CENTURY_MS, durationUs } from '../core/duration.ts'
import { SluiceError } from '../core/errors.ts'
import type { AnyKey } from '../core/key.ts'
import type { Rule } from '../core/rule.ts'
import { createFailureMode } from '../failure/failure-mode.ts'
import { checkFailure } from '../failure/failure-options.ts'
import type { Asked, KeyTexts } from '../failure/pending.ts'
import type { RuleSet } from '../stores/store.ts'
import { fieldsOf, shownKey, tierKeyOf } from './fields.ts'
import { type Call, createGate, lineOf, partsOf, ratesOnly } from './gate.ts'
import type { CostByRule } from './key-types.ts'
import { clockOfStore } from './limiter-options.ts'
import { penaltyOf } from './penalty.ts'
import {
  type AsyncPermit,
  createOpenPermits,
  holdUsOf,
  type NoPermit,
  noPermit,
  permitFrom,
  permitOn,
  reported,
  type Taken,
} from './permit.ts'
import { isPolicy, type Policy, ruleList } from './policy.ts'
import { checkRequests } from './requests.ts'
import { noteRules } from './rules-of.ts'
import { unusedName } from './store-name.ts'
import type { AsyncLimiter, AsyncLimiterOptions, CallOptions } from './verbs.ts'
import { admitted, checkWait } from './wait-options.ts'
import { createWaitQueue } from './wait-queue.ts'

/**
 * createAsyncLimiter is the `createLimiter` of an asynchronous store: all verbs are promises. A
 * store brings it, so that programs without such a store need not bundle it.
 */
export function createAsyncLimiter(
  rules: Rule | readonly Rule[] | Policy,
  options: AsyncLimiterOptions,
): AsyncLimiter {
  const { name = 'default', store, onDecision } = options
  if ((options as { clock?: unknown }).clock !== undefined) throw clockOfStore()
  const failure = checkFailure(options)
  const policy = isPolicy(rules) ? rules : undefined
  const lists = policy ? policy.ruleLists : [ruleList('createLimiter', rules)]
  const fields = fieldsOf(lists.flat())
  const penalty = penaltyOf(options.penalty, fields)
  const all = penalty ? lists.map((rules) => [...rules, penalty]) : lists
  const useName = unusedName(store, name, options.share)
  const opened = store.open(name, all, failure.timeoutMs, policy !== undefined)
  const { hash } = opened
  const gate = createGate(name, policy ?? lists[0], fields, penalty, opened.use, useName)
  const table = createFailureMode(opened, store.clock, failure, fields?.names)
  const { begin, beginCheck, beginDecision, checkOpen, costOf, setOf } = gate
  const line = createWaitQueue(store.clock, steadyClock(store.clock))
  const open = createOpenPermits(() => Math.floor(performance.now() * 1_000))

  /** Returns a key as text, and its fields. */
  function texts(given: AnyKey): KeyTexts {
    const key = hash ? hash(given) : given
    return typeof key === 'string' ? { key, fields: undefined } : { key: lineOf(key), fields: key }
  }

  function asked({ set, key: given, cost }: Call): Asked {
    const { key, fields } = texts(given)
    return { set, key, fields, cost }
  }

  /** Decides. Invalid arguments reject. Not `async`, which would cost one more promise. */
  function decide(
    given: string,
    cost: number | CostByRule,
    options: CallOptions | undefined,
    spend: boolean,
  ): Promise<Decision> {
    try {
      const beginOne = spend ? beginCheck : beginDecision
      return table.decide(asked(beginOne(given, cost, options)), spend)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  function report(decision: Decision, key: string, cost: number | CostByRule): Decision {
    onDecision?.(decision, key, cost as number)
    return decision
  }

  function wake(key: AnyKey): void {
    for (const part of partsOf(key)) line.wake(part)
  }

  /** Decides, and returns a permit if the call is admitted. */
  async function acquireNow(
    call: Call,
    isCounted: boolean,
  ): Promise<AsyncPermit<never> | NoPermit> {
    const { set, key, cost } = call
    const about = asked(call)
    const { decision, held: first } = await table.acquire(about, isCounted)
    if (!decision.allowed) return noPermit(decision)
    let held = first
    /** The extension in flight. It moves the hold, so later calls must wait for it. */
    let extending: Promise<boolean> | undefined
    const holdUs = held ? holdUsOf(set.rules) : 0

    async function extendAfter(earlier: Promise<boolean> | undefined): Promise<boolean> {
      if (earlier) await earlier
      const extended = held && (await table.extend(about, held))
      // Do not release holds of unknown state: that could free the units of another permit.
      if (held) held = extended ?? { ...held, holds: new Float64Array(held.holds.length) }
      return !held || !!extended
    }

    return permitOn<AsyncPermit<never>, Promise<void>>(
      {
        decision,
        cost,
        holdUs,
        read: (actual) => gate.costOf(set, actual),
        done: async () => {},
        async finish(change) {
          // Without an await if none is under way: what the caller asks next comes after it.
          if (extending) await extending
          if (held) await table.finish(about, held, change, holdUs)
          wake(key)
        },
        extend() {
          const extended = extendAfter(extending).finally(() => {
            if (extending === extended) extending = undefined
          })
          extending = extended
          return extended
        },
      },
      open,
    )
  }

  async function close(): Promise<void> {
    if (!gate.close()) return
    line.close(new SluiceError('SLUICE_CLOSED', `the limiter "${name}" was closed.`))
    await table.close()
  }

  async function* entries() {
    checkOpen()
    for await (const page of table.keys()) {
      const decisions = await table.look(page.map((key) => ({ ...texts(key), ...listed(key) })))
      for (const [i, key] of page.entries()) {
        yield { ...shownKey(key, fields), decision: decisions[i] }
      }
    }
  }

  function listed(key: AnyKey): { readonly set: RuleSet; readonly cost: number } {
    const isShown = policy && !policy.knows(tierKeyOf(key))
    return { set: setOf(key, isShown ? { tier: policy.shownTier } : undefined), cost: 1 }
  }

  const limiter: AsyncLimiter = {
    name,

    check(key, cost = 1, options) {
      const decided = decide(key, cost, options, true)
      return onDecision ? decided.then((decision) => report(decision, key, cost)) : decided
    },

    peek: (key, cost = 1, options) => decide(key, cost, options, false),

    async checkMany(requests) {
      checkOpen()
      const checked = checkRequests(requests, beginCheck)
      const decisions = await table.decideAll(checked.map(({ call }) => asked(call)))
      decisions.forEach((decision, i) => void report(decision, checked[i].key, checked[i].cost))
      return decisions
    },

    async wait(given, cost = 1, options = {}) {
      const { call, ...limits } = checkWait('wait', options)
      const first = beginCheck(given, cost, call)
      const { key } = first
      const decideBy = (set: RuleSet, spend: boolean) =>
        table.decide(asked({ set, key, cost: costOf(set, cost) }), spend, false)
      const { decision } = await line.join(lineOf(key), {
        ...limits,
        ...gate.inLine(first, cost, call),
        peek: (set) => decideBy(set, false),
        take: async (set) => ({ decision: await decideBy(set, true) }),
      })
      return admitted(lineOf(key), report(withoutDelay(decision), given, cost))
    },

    waiting: (key) => line.waiting(lineOf(gate.wholeKey(key))),

    async tryAcquire(key, cost = 1, options) {
      const permit = await acquireNow(beginDecision(key, cost, options), true)
      return reported(permit, (decision) => report(decision, key, cost))
    },

    async acquire(given, cost = 1, options = {}) {
      const { call, ...limits } = checkWait('acquire', options)
      const first = beginDecision(given, cost, call)
      const { key } = first
      const taken = await line.join<Taken<AsyncPermit<never>>>(lineOf(key), {
        ...limits,
        ...gate.inLine(first, cost, call),
        peek: (set) => table.decide(asked({ set, key, cost: costOf(set, cost) }), false),
        async take(set) {
          const permit = await acquireNow({ set, key, cost: costOf(set, cost) }, false)
          return { decision: permit.decision, permit }
        },
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
        void permit.release()
      }
    },

    async charge(key, units, options) {
      const call = begin(key, units, options)
      await table.charge(asked({ ...call, cost: ratesOnly(call.set, call.cost) }))
    },
    async refund(key, units, options) {
      const call = begin(key, units, options)
      await table.refund(asked(call))
      wake(call.key)
    },
    async block(key, duration) {
      const us = durationUs('block: duration', duration, 0.001, CENTURY_MS)
      await table.block(texts(gate.keyOf(key)), us)
    },
    async unblock(given) {
      const key = gate.keyOf(given)
      await table.unblock(texts(key))
      wake(key)
    },
    async reset(given) {
      const key = gate.keyOf(given)
      await table.reset(texts(key))
      wake(key)
    },
    async clear() {
      checkOpen()
      await table.clear()
      line.wakeAll()
    },
    entries,
    async size() {
      checkOpen()
      let count = 0
      for await (const page of table.keys()) count += page.length
      return count
    },
    stats: () => ({ ...opened.stats(), held: open.count() }),
    close,
    [Symbol.asyncDispose]: close,
  }
  return noteRules(limiter, (key, options) => begin(key, 0, options).set.rules)
}
