import { createAsyncLine } from './async-line.ts'
import { type Decision, decisionOf } from './decision.ts'
import { CENTURY_MS, durationUs } from './duration.ts'
import { SluiceError } from './errors.ts'
import { checkKey } from './key.ts'
import {
  checkedCapacity,
  checkRequests,
  checkWait,
  knownWaitUs,
  tooLong,
} from './limiter-checks.ts'
import { createGate } from './limiter-gate.ts'
import { isPolicy, type Policy, ruleList } from './policy.ts'
import type { Rule } from './rule.ts'
import type { TableRequest } from './stores/store.ts'
import type { AsyncLimiter, AsyncLimiterOptions } from './verbs.ts'

/** createAsyncLimiter makes a limiter whose verbs are promises, on a store that answers later. */
export function createAsyncLimiter(
  rules: Rule | readonly Rule[] | Policy,
  options: AsyncLimiterOptions,
): AsyncLimiter {
  const { name = 'default', store, onDecision } = options
  const policy = isPolicy(rules) ? rules : undefined
  const lists = policy ? policy.ruleLists : [ruleList('createLimiter', rules)]
  const table = store.openAsync(name, lists)
  const gate = createGate(name, policy ?? lists[0], table.use)
  const { begin, beginDecision, checkOpen, setOf } = gate
  const line = createAsyncLine(store.clock)

  async function decide(requests: readonly TableRequest[]): Promise<Decision[]> {
    const figures = await table.decide(requests)
    return figures.map((each, i) => decisionOf(requests[i].set.rules, each))
  }

  function report(decision: Decision, key: string, cost: number): Decision {
    onDecision?.(decision, key, cost)
    return decision
  }

  async function close(): Promise<void> {
    if (!gate.close()) return
    line.close(new SluiceError('SLUICE_CLOSED', `the limiter "${name}" was closed.`))
  }

  async function* entries() {
    checkOpen()
    for await (const key of table.keys()) {
      const tier = policy && !policy.knows(key) ? policy.shownTier : undefined
      const set = setOf(key, tier === undefined ? undefined : { tier })
      const [decision] = await decide([{ set, key, cost: 1, spend: false }])
      yield { key, decision }
    }
  }

  return {
    name,

    async check(key, cost = 1, options) {
      const set = beginDecision(key, cost, options)
      const [decision] = await decide([{ set, key, cost, spend: true }])
      return report(decision, key, cost)
    },

    async peek(key, cost = 1, options) {
      const set = beginDecision(key, cost, options)
      const [decision] = await decide([{ set, key, cost, spend: false }])
      return decision
    },

    async checkMany(requests) {
      checkOpen()
      const checked = checkRequests(requests, beginDecision)
      const decisions = await decide(checked.map((request) => ({ ...request, spend: true })))
      decisions.forEach((decision, i) => void report(decision, checked[i].key, checked[i].cost))
      return decisions
    },

    async wait(key, cost = 1, options = {}) {
      const { call, ...limits } = checkWait(options)
      beginDecision(key, cost, call)
      // The rules may change while it waits, so they are looked up every time.
      const look = async (spend: boolean) => {
        const set = checkedCapacity(setOf(key, call), cost)
        return (await decide([{ set, key, cost, spend }]))[0]
      }
      const decision = await line.join(key, {
        cost,
        ...limits,
        check: () => look(true),
        async outlook(ahead) {
          const seen = await look(false)
          const waitUs = knownWaitUs(seen, setOf(key, call).rules, ahead, cost)
          return { waitUs, refusal: tooLong(seen, waitUs) }
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
      for await (const _ of table.keys()) count += 1
      return count
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
