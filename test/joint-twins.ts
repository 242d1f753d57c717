import {
  type Algorithm,
  type AsyncStore,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type Rule,
} from 'sluice'
import { manualClock } from 'sluice/testing'
import { type Twin, withAlgorithm, withTable } from './broken-twins.ts'

/** Wraps a limiter. The suite awaits every answer, so the wrapper may be asynchronous. */
function withLimiter(bug: string, wrap: (limiter: Limiter) => Limiter): Twin {
  return {
    bug,
    make(options = {}) {
      const clock = manualClock()
      const inner = memoryStore({ ...options, clock })
      const store = {
        kind: 'async',
        clock,
        createLimiter(rules: Rule, { name, onDecision, penalty, share }: LimiterOptions) {
          const options = { name, onDecision, penalty, share, store: inner }
          return wrap(createLimiter(rules, options) as Limiter)
        },
      }
      return { store: store as unknown as AsyncStore, clock }
    },
  }
}

/** soundLimiter is built like a broken limiter, without a bug. */
export const soundLimiter = withLimiter('no limiter is wrapped', (limiter) => limiter)

/** Returns a time that stands still from the latest hold on. */
function stuckUs(cells: Float64Array, at: number, rule: Rule, nowUs: number): number {
  return cells[at + 1] === 0 ? nowUs : cells[at + 1] * Math.ceil(rule.perUs / 4)
}

const ofHolds = (patch: (algorithm: Algorithm) => Partial<Algorithm>) => (algorithm: Algorithm) =>
  algorithm.holds ? patch(algorithm) : {}

type Punish = NonNullable<Algorithm['punish']>

const ofPenalties = (wrap: (punish: Punish) => Punish) => (algorithm: Algorithm) =>
  algorithm.punish ? { punish: wrap(algorithm.punish) } : {}

/** jointTwins have bugs of permits, of costs by rule, and of decisions over several fields. */
export const jointTwins: readonly Twin[] = [
  withTable('a first field is charged although the rule of a second one refuses', (table) => {
    return {
      ...table,
      ask(set, key, cost, spend, nowUs) {
        const waitUs = table.ask!(set, key, cost, spend, nowUs)
        if (spend && waitUs === 0 && cost !== 0) table.take!(set, key, cost, nowUs)
        return waitUs
      },
      take() {},
    }
  }),

  withTable('refusals of a blocked key count for a penalty', (table) => ({
    ...table,
    punish(set, key, cost, nowUs) {
      if (!set.penalty) return
      const { source, retryAfterMs } = table.decide(set, key, cost, false, nowUs)
      table.unblock(key)
      table.punish(set, key, cost, nowUs)
      if (source !== 'blocked') return
      const us = Math.round(retryAfterMs * 1_000)
      if (table.decide(set, key, cost, false, nowUs).source !== 'blocked') {
        table.block(key, nowUs + us, nowUs)
      }
    },
  })),

  withTable('refusals count for no penalty', (table) => ({ ...table, punish() {} })),

  withTable('peeks count for a penalty', (table) => ({
    ...table,
    decide(set, key, cost, spend, atUs) {
      const decision = table.decide(set, key, cost, spend, atUs)
      const isPeek = !spend && atUs === undefined
      if (isPeek && !decision.allowed) table.punish(set, key, cost, table.nowUs())
      return decision
    },
  })),

  withTable('refusals by the rules of other fields count for a penalty', (table) => ({
    ...table,
    decide(set, key, cost, spend, atUs) {
      const decision = table.decide(set, key, cost, spend, atUs)
      const isAskedForPenalty = set.penalty && !spend && atUs !== undefined
      return isAskedForPenalty ? { ...decision, allowed: false } : decision
    },
  })),

  withLimiter('retries in line count for a penalty', (limiter) => ({
    ...limiter,
    async acquire(key, cost, { maxWaitMs, ...options } = {}) {
      if (maxWaitMs !== 0) return limiter.acquire(key, cost, { ...options, maxWaitMs })
      const permit = limiter.tryAcquire(key, cost, options)
      if (!permit.allowed) throw Object.assign(new Error(), { code: 'SLUICE_WAIT_TOO_LONG' })
      return permit
    },
  })),

  withAlgorithm(
    'refusals are forgotten a microsecond early',
    ofPenalties(
      (punish) => (cells, at, rule, nowUs) =>
        punish(cells, at, { ...rule, perUs: rule.perUs - 1 }, nowUs),
    ),
  ),

  withAlgorithm(
    'penalties are forgotten a microsecond early',
    ofPenalties((punish) => (cells, at, rule, nowUs) => {
      const us = punish(cells, at, rule, nowUs)
      if (us > 0) cells[at + 3] -= 1
      return us
    }),
  ),

  withAlgorithm(
    'the longest block is followed by the first one',
    ofPenalties((punish) => (cells, at, rule, nowUs) => {
      cells[at + 2] %= String(rule.params.block).split(',').length
      return punish(cells, at, rule, nowUs)
    }),
  ),

  withAlgorithm(
    'the first block is as long as the second',
    ofPenalties((punish) => (cells, at, rule, nowUs) => {
      if (nowUs >= cells[at + 3]) [cells[at + 2], cells[at + 3]] = [1, nowUs + 1]
      return punish(cells, at, rule, nowUs)
    }),
  ),

  withTable('a permit is released twice', (table) => ({
    ...table,
    finish(set, key, held, change, nowUs) {
      table.finish(set, key, held, change, nowUs)
      table.finish(set, key, held, 0, nowUs)
    },
  })),

  withAlgorithm(
    'the units of a holder that died never come back',
    ofHolds((a) => ({
      waitUs: (cells, at, rule, cost, nowUs) =>
        a.waitUs(cells, at, rule, cost, stuckUs(cells, at, rule, nowUs)),
      remaining: (cells, at, rule, nowUs) =>
        a.remaining(cells, at, rule, stuckUs(cells, at, rule, nowUs)),
    })),
  ),

  withAlgorithm(
    'a hold ends up to a quarter of its time early',
    ofHolds((a) => {
      const later = (rule: Rule, nowUs: number) => nowUs + Math.ceil(rule.perUs / 4)
      return {
        waitUs(cells, at, rule, cost, nowUs) {
          const waitUs = a.waitUs(cells, at, rule, cost, later(rule, nowUs))
          return Math.max(0, waitUs)
        },
        remaining: (cells, at, rule, nowUs) => a.remaining(cells, at, rule, later(rule, nowUs)),
      }
    }),
  ),

  withAlgorithm(
    'a release after the hold has ended frees the unit of another',
    ofHolds(() => ({
      release(cells, at, _rule, cost) {
        const slot = [2, 3, 4, 5, 6].find((i) => cells[at + i] >= cost)
        if (slot !== undefined) cells[at + slot] -= cost
        return slot !== undefined
      },
    })),
  ),

  withTable('rows have no generation, so that a release after a reset frees another', (table) => ({
    ...table,
    decide(set, ...call) {
      set.generation = 1
      return table.decide(set, ...call)
    },
    take(set, ...call) {
      set.generation = 1
      table.take!(set, ...call)
    },
  })),

  withAlgorithm(
    'eviction forgives what is held',
    ofHolds(() => ({ merge() {} })),
  ),

  withTable('a permit gives back units of a window that has closed', (table) => ({
    ...table,
    finish: (set, key, held, change, nowUs) =>
      table.finish(set, key, { ...held, spentUs: nowUs }, change, nowUs),
  })),

  withTable('the cost of the first rule is that of all', (table) => {
    const first = (cost: number | readonly number[]) =>
      typeof cost === 'number' ? cost : cost.map(() => cost[0])
    return {
      ...table,
      decide: (set, key, cost, ...call) => table.decide(set, key, first(cost), ...call),
      ask: (set, key, cost, ...call) => table.ask!(set, key, first(cost), ...call),
      take: (set, key, cost, ...call) => table.take!(set, key, first(cost), ...call),
      tell: (set, key, cost, ...call) => table.tell!(set, key, first(cost), ...call),
    }
  }),

  withLimiter('a field that is null still counts', (limiter) => {
    const filled = (key: unknown) =>
      typeof key === 'string'
        ? key
        : Object.fromEntries(
            Object.entries(key as object).map(([field, value]) => [field, value ?? 'null']),
          )
    const { check, peek, tryAcquire, charge, refund } = limiter
    return {
      ...limiter,
      check: (key, ...call) => check(filled(key) as string, ...call),
      peek: (key, ...call) => peek(filled(key) as string, ...call),
      tryAcquire: (key, ...call) => tryAcquire(filled(key) as string, ...call),
      charge: (key, ...call) => charge(filled(key) as string, ...call),
      refund: (key, ...call) => refund(filled(key) as string, ...call),
    }
  }),
]
