import type { Clock } from '../clock.ts'
import { type Decision, decisionOf, type Source } from '../decision.ts'
import { SluiceError } from '../errors.ts'
import type { Rule } from '../rule.ts'
import { memoryStore } from '../stores/memory.ts'
import type { AsyncTable, RuleSet, Table, TableRequest } from '../stores/store.ts'
import { createTimeLimit } from '../time-limit.ts'
import type { FailureOptions } from '../verbs.ts'
import { createBreaker } from './breaker.ts'
import { shareOf } from './share.ts'

/** How long a caller is told to wait when nobody knows. */
const UNKNOWN_WAIT_MS = 1_000

/**
 * FailureMode is an async table that always decides, in time, whatever becomes of its store. What
 * changes the store on purpose rejects instead: nobody is to believe that it was done.
 */
export interface FailureMode {
  decide(requests: readonly TableRequest[]): Promise<Decision[]>
  charge(set: RuleSet, key: string, cost: number): Promise<void>
  refund(set: RuleSet, key: string, cost: number): Promise<void>
  block(key: string, us: number): Promise<void>
  unblock(key: string): Promise<void>
  reset(key: string): Promise<void>
  clear(): Promise<void>
  keys(): AsyncIterable<readonly string[]>
  close(): Promise<void>
}

export function createFailureMode(
  table: AsyncTable,
  clock: Clock,
  options: FailureOptions,
): FailureMode {
  const { timeoutMs = 50, onStoreFailure = 'local', fleetSize = 1 } = options
  const limited = createTimeLimit(timeoutMs)
  const breaker = createBreaker({
    open: (error) => tell(() => options.onDegraded?.(unavailable(error))),
    closed: () => tell(() => options.onRecovered?.()),
  })
  const local = createLocal(clock, fleetSize)

  async function ask(requests: readonly TableRequest[]): Promise<Decision[]> {
    const pass = breaker.enter()
    if (pass) {
      try {
        const figures = await limited(table.decide(requests))
        breaker.succeeded(pass)
        return figures.map((each, i) => decisionOf(requests[i].set.rules, each))
      } catch (error) {
        breaker.failed(pass, error)
      }
    }
    return requests.map(instead)
  }

  function instead(request: TableRequest): Decision {
    if (onStoreFailure === 'local') return local.decide(request)
    return unknown(request.set.rules, onStoreFailure)
  }

  /** What a call about one key does to the store, or else to what stands in for it. */
  async function settle(call: () => Promise<void>, otherwise: () => void): Promise<void> {
    const pass = breaker.enter()
    if (pass) {
      try {
        await limited(call())
        breaker.succeeded(pass)
        return
      } catch (error) {
        breaker.failed(pass, error)
      }
    }
    if (onStoreFailure === 'local') otherwise()
  }

  async function insist<T>(call: Promise<T>): Promise<T> {
    try {
      return await call
    } catch (error) {
      throw unavailable(error)
    }
  }

  return {
    async decide(requests) {
      if (!table.decideAtOnce) return ask(requests)
      const known = requests.map((request) => table.decideAtOnce?.(request))
      const others = requests.filter((_, i) => known[i] === undefined)
      const asked = others.length > 0 ? await ask(others) : []
      let next = 0
      return known.map((figures, i) =>
        figures ? decisionOf(requests[i].set.rules, figures) : asked[next++],
      )
    },
    charge: (set, key, cost) =>
      settle(
        () => table.charge(set, key, cost),
        () => local.charge(set, key, cost),
      ),
    refund: (set, key, cost) =>
      settle(
        () => table.refund(set, key, cost),
        () => local.refund(set, key, cost),
      ),
    async block(key, us) {
      await insist(limited(table.block(key, us)))
      local.block(key, us)
    },
    async unblock(key) {
      await insist(limited(table.unblock(key)))
      local.unblock(key)
    },
    async reset(key) {
      await insist(limited(table.reset(key)))
      local.reset(key)
    },
    async clear() {
      await insist(table.clear())
      local.clear()
    },
    async *keys() {
      const pages = table.keys()[Symbol.asyncIterator]()
      for (;;) {
        const page = await insist(pages.next())
        if (page.done) return
        yield page.value
      }
    },
    async close() {
      await limited(Promise.resolve(table.close?.())).catch(() => {})
    },
  }
}

/** Local keeps the shares of a fleet's rules in memory while the store is away. */
function createLocal(clock: Clock, fleetSize: number) {
  let table: Table | undefined
  const sets = new WeakMap<RuleSet, RuleSet>()
  const opened = () => {
    table ??= memoryStore({ clock }).open('local', [], true)
    return table
  }

  function setOf(set: RuleSet): RuleSet {
    let own = sets.get(set)
    if (!own) {
      own = opened().use(set.rules.map((rule) => shareOf(rule, fleetSize)))
      own.figures.source = 'local'
      sets.set(set, own)
    }
    return own
  }

  return {
    decide({ set, key, cost, spend }: TableRequest): Decision {
      const own = setOf(set)
      if (cost > own.capacity) return unknown(own.rules, 'local')
      opened().decide(own, key, cost, opened().nowUs(), spend)
      return decisionOf(own.rules, own.figures)
    },
    charge: (set: RuleSet, key: string, cost: number) =>
      opened().charge(setOf(set), key, cost, opened().nowUs()),
    refund: (set: RuleSet, key: string, cost: number) =>
      opened().refund(setOf(set), key, cost, opened().nowUs()),
    block(key: string, us: number) {
      const nowUs = opened().nowUs()
      opened().block(key, nowUs + us, nowUs)
    },
    unblock: (key: string) => table?.unblock(key),
    reset: (key: string) => table?.reset(key, table.nowUs()),
    clear: () => table?.clear(),
  }
}

/** A decision that nobody counted: everything passes, or nothing does, and nothing is known. */
function unknown(rules: readonly Rule[], source: Source): Decision {
  const allowed = source === 'open'
  const retryAfterMs = allowed ? 0 : UNKNOWN_WAIT_MS
  const each = rules.map(({ name, capacity }) => ({
    rule: name,
    capacity,
    remaining: 0,
    retryAfterMs,
    resetAfterMs: retryAfterMs,
    delayMs: 0,
  }))
  const capacity = Math.min(...rules.map((rule) => rule.capacity))
  return { ...each[0], capacity, allowed, rules: each, source }
}

function unavailable(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  const why = error instanceof Error ? error.message : String(error)
  return new SluiceError('SLUICE_STORE_UNAVAILABLE', `the store failed: ${why}`, { cause: error })
}

/** What a callback throws is nobody's decision: it goes where uncaught errors go. */
function tell(callback: () => void): void {
  queueMicrotask(callback)
}
