import type { Decision } from '../core/decision.ts'
import { CENTURY_MS, durationUs } from '../core/duration.ts'
import { SluiceError } from '../core/errors.ts'
import { checkKey } from '../core/key.ts'
import type { Rule } from '../core/rule.ts'
import { createFailureMode } from '../failure/failure-mode.ts'
import { checkFailure } from '../failure/failure-options.ts'
import type { Wanted } from '../failure/pending.ts'
import { createAsyncLine } from './async-line.ts'
import { checkedCapacity, createGate } from './gate.ts'
import { clockOfStore } from './limiter-options.ts'
import { isPolicy, type Policy, ruleList } from './policy.ts'
import { checkRequests } from './requests.ts'
import { noteRules } from './rules-of.ts'
import type { AsyncLimiter, AsyncLimiterOptions, CallOptions } from './verbs.ts'
import { checkWait, outlookOf } from './wait-options.ts'

/**
 * createAsyncLimiter is the `createLimiter` of an asynchronous store: all verbs are promises. A store
 * brings it, so that programs without such a store need not bundle it.
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
  const opened = store.open(name, lists, failure.timeoutMs, policy !== undefined)
  const gate = createGate(name, policy ?? lists[0], opened.use)
  const table = createFailureMode(opened, store.clock, failure)
  const { begin, beginDecision, checkOpen, setOf } = gate
  const line = createAsyncLine(store.clock)

  /** A mistake of the caller rejects; an async function would cost one more promise. */
  function decide(
    key: string,
    cost: number,
    options: CallOptions | undefined,
    spend: boolean,
  ): Promise<Decision> {
    try {
      const set = beginDecision(key, cost, options)
      return table.decide(set, key, cost, spend)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  function report(decision: Decision, key: string, cost: number): Decision {
    onDecision?.(decision, key, cost)
    return decision
  }

  async function close(): Promise<void> {
    if (!gate.close()) return
    line.close(new SluiceError('SLUICE_CLOSED', `the limiter "${name}" was closed.`))
    await table.close()
  }

  async function* entries() {
    checkOpen()
    for await (const page of table.keys()) {
      const decisions = await table.look(page.map(listed))
      for (const [i, key] of page.entries()) yield { key, decision: decisions[i] }
    }
  }

  function listed(key: string): Wanted {
    const tier = policy && !policy.knows(key) ? policy.shownTier : undefined
    const set = setOf(key, tier === undefined ? undefined : { tier })
    return { verb: 'peek', set, key, cost: 1 }
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
      const checked = checkRequests(requests, beginDecision)
      const decisions = await table.decideAll(
        checked.map((request) => ({ ...request, verb: 'check' as const })),
      )
      decisions.forEach((decision, i) => void report(decision, checked[i].key, checked[i].cost))
      return decisions
    },

    async wait(key, cost = 1, options = {}) {
      const { call, ...limits } = checkWait(options)
      beginDecision(key, cost, call)
      // The rules may change while it waits, so they are looked up every time.
      const look = async (spend: boolean) => {
        const set = checkedCapacity(setOf(key, call), cost)
        return table.decide(set, key, cost, spend)
      }
      const decision = await line.join(key, {
        cost,
        ...limits,
        check: () => look(true),
        async outlook(ahead) {
          const seen = await look(false)
          // Nothing is counted while everything passes.
          const rules = seen.source === 'open' ? [] : setOf(key, call).rules
          return outlookOf(seen, rules, ahead, cost)
        },
      })
      return report(decision, key, cost)
    },

    async charge(key, cost, options) {
      await table.charge(begin(key, cost, options), key, cost)
    },
    async refund(key, cost, options) {
      await table.refund(begin(key, cost, options), key, cost)
      line.wake(key)
    },
    async block(key, duration) {
      checkOpen()
      checkKey(key)
      await table.block(key, durationUs('block: duration', duration, 0.001, CENTURY_MS))
    },
    async unblock(key) {
      checkOpen()
      checkKey(key)
      await table.unblock(key)
      line.wake(key)
    },
    async reset(key) {
      checkOpen()
      checkKey(key)
      await table.reset(key)
      line.wake(key)
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
    stats: opened.stats,
    close,
    [Symbol.asyncDispose]: close,
  }
  return noteRules(limiter, (key, options) => setOf(key, options).rules)
}
