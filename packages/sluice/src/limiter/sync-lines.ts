import { type Decision, withoutDelay } from '../core/decision.ts'
import { newGeneration } from '../core/held.ts'
import { type Call, lineOf } from './gate.ts'
import type { Waiter } from './line.ts'
import { type NoPermit, noPermit, type Permit, permitFrom, reported, type Taken } from './permit.ts'
import type { SyncParts } from './sync-parts.ts'
import { permitOf } from './sync-permit.ts'
import type { Limiter } from './verbs.ts'
import { admitted, checkWait } from './wait-options.ts'

type LineVerbs = Pick<Limiter, 'wait' | 'waiting' | 'tryAcquire' | 'acquire' | 'run'>

/** lineVerbs creates the verbs that wait in a queue or give permits. */
export function lineVerbs(parts: SyncParts): LineVerbs {
  const { table, gate, line, open, report, decideCall, wake } = parts
  const { beginCheck, beginDecision, costOf } = gate
  const { decide, nowUs } = table

  /** Decides, and returns a permit if the call is admitted. */
  function acquireNow(call: Call, isCounted: boolean): Permit<never> | NoPermit {
    const { set, key, cost } = call
    const spentUs = nowUs()
    set.generation = newGeneration()
    const decision = isCounted ? decideCall(call, spentUs) : decide(set, key, cost, true, spentUs)
    if (!decision.allowed) return noPermit(decision)
    return permitOf(table, call, { decision, spentUs, open, costOf, ended: () => wake(key) })
  }

  /** Tells whether a call may skip the queue, which costs more than the call itself. */
  function needsNoLine({ set, key }: Call): boolean {
    return line.waiting(lineOf(key)) === 0 && !set.delays
  }

  /** Waits in the queue until the call passes. */
  function join<Given extends { readonly decision: Decision }>(
    first: Call,
    cost: unknown,
    { call, ...limits }: ReturnType<typeof checkWait>,
    take: (call: Call) => Given,
    more?: Partial<Waiter<Given>>,
  ) {
    const { key } = first
    return line.join<Given>(lineOf(key), {
      ...limits,
      ...gate.inLine(first, cost, call),
      peek: (set) => decide(set, key, costOf(set, cost), false),
      take: (set) => take({ set, key, cost: costOf(set, cost) }),
      ...more,
    })
  }

  const verbs: LineVerbs = {
    async wait(given, cost = 1, options = {}) {
      const limits = checkWait('wait', options)
      const first = beginCheck(given, cost, limits.call)
      const spend = ({ set, key, cost }: Call) => decide(set, key, cost, true)
      if (needsNoLine(first)) {
        const decision = spend(first)
        if (decision.allowed) return report(decision, given, cost)
      }
      const take = (call: Call) => ({ decision: spend(call) })
      const { decision } = await join(first, cost, limits, take)
      return admitted(lineOf(first.key), report(withoutDelay(decision), given, cost))
    },

    waiting: (key) => line.waiting(lineOf(gate.wholeKey(key))),

    tryAcquire(key, cost = 1, options) {
      const permit = acquireNow(beginDecision(key, cost, options), true)
      return reported(permit, (decision) => report(decision, key, cost))
    },

    async acquire(given, cost = 1, options = {}) {
      const limits = checkWait('acquire', options)
      const first = beginDecision(given, cost, limits.call)
      const tell = (decision: Decision) => report(decision, given, cost)
      if (needsNoLine(first)) {
        const permit = acquireNow(first, false)
        if (permit.allowed) return reported(permit, tell)
      }
      const take = (call: Call): Taken<Permit<never>> => {
        const permit = acquireNow(call, false)
        return { decision: permit.decision, permit }
      }
      const taken = await join(first, cost, limits, take, {
        // Releases by this limiter wake the queue.
        ...(table.isShared ? {} : { pollUs: undefined }),
        dropped: ({ permit }) => void (permit.allowed && permit.cancel()),
      })
      return permitFrom(lineOf(first.key), taken, tell)
    },

    async run(key, work, options = {}) {
      const { cost, ...waiting } = options
      const permit = await verbs.acquire(key, cost, waiting)
      try {
        return await work(permit)
      } finally {
        permit.release()
      }
    },
  }
  return verbs
}
