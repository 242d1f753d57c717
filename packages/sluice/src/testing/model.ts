import type { Decision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import type { Hold } from './meters.ts'
import {
  countedBy,
  createCounters,
  type ModelCall,
  type ModelCost,
  type ModelKey,
  partsOf,
  spendAll,
} from './model-counters.ts'
import { first, standing, summary } from './model-decision.ts'
import { type ModelPermit, modelPermit } from './model-permit.ts'

/** What every verb about a call is told of it. */
type OfCall = [key: ModelKey, rules: readonly Rule[], cost: ModelCost, nowUs: number]

/**
 * Model is the specification as slow, obviously right code. Every answer comes from one question
 * asked of lists of instants and exact fractions, "would so many units pass at that instant?":
 * waits and remaining units are searched for, never computed. Stores are compared with it.
 */
export interface Model {
  decide(...call: [...OfCall, spend: boolean]): Decision
  /** Decides and spends, and gives a permit if that is admitted. */
  acquire(...call: OfCall): { readonly decision: Decision; readonly permit?: ModelPermit }
  charge(...call: OfCall): void
  refund(...call: OfCall): void
  /** A refused request: it spends nothing, but starts the refill of these rules. */
  carry(key: ModelKey, rules: readonly Rule[], nowUs: number): void
  /** Of a key with fields, this and the next two are for each field that the given part has. */
  block(key: ModelKey, untilUs: number): void
  unblock(key: ModelKey): void
  reset(key: ModelKey): void
  clear(): void
  /** How many keys, or parts of keys, are blocked or not fresh. */
  size(nowUs: number): number
}

/** createModel makes a model without any keys. */
export function createModel(): Model {
  const counters = createCounters()
  const blocked = new Map<string, number>()

  function decide(
    call: ModelCall,
    nowUs: number,
    spend: boolean,
    holds?: Map<string, Hold>,
  ): Decision {
    const all = counters.of(call, nowUs, !spend)
    const ends = partsOf(call.key).map((part) => blocked.get(part) ?? 0)
    const blockedMs = Math.max(0, ...ends.map((us) => us - nowUs)) / 1_000
    const waits = all.map(({ meter, units }) => first((us) => meter.passes(units, nowUs + us)))
    const delays = all.map(({ rule, meter, units }) =>
      units > 0 && rule.algorithm.delays ? first((us) => meter.isFresh(nowUs + us)) : 0,
    )
    const allowed = blockedMs === 0 && waits.every((us) => us === 0)
    if (allowed && spend) spendAll(all, nowUs, holds)
    const each = all.map(({ rule, meter }, i) => {
      const delayMs = allowed ? delays[i] / 1_000 : 0
      return { ...standing(rule, meter, nowUs, waits[i] / 1_000), delayMs }
    })
    const isHeld = all.map(({ meter }) => meter.hold !== undefined)
    return { allowed, ...summary(each, isHeld, blockedMs, typeof call.cost === 'number') }
  }

  /** Charges the rates of one part of a key, all at once or, where nothing is to be charged, not at all. */
  function chargePart(call: ModelCall, nowUs: number): void {
    const charged = counters.of(call, nowUs, true).filter(({ meter }) => !meter.hold)
    if (charged.every(({ units }) => units === 0)) return
    const rates = counters.of(call, nowUs).filter(({ meter }) => !meter.hold)
    spendAll(rates, nowUs)
  }

  return {
    decide: (key, rules, cost, nowUs, spend) => decide({ key, rules, cost }, nowUs, spend),
    acquire(key, rules, cost, nowUs) {
      const call = { key, rules, cost }
      const holds = new Map<string, Hold>()
      const decision = decide(call, nowUs, true, holds)
      if (!decision.allowed) return { decision }
      return { decision, permit: modelPermit(counters, call, nowUs, holds) }
    },
    charge(key, rules, cost, nowUs) {
      for (const part of new Set(rules.map((rule) => countedBy(rule, key)))) {
        const own = rules.filter((rule) => countedBy(rule, key) === part)
        chargePart({ key, rules: own, cost }, nowUs)
      }
    },
    refund(key, rules, cost, nowUs) {
      for (const { meter, units } of counters.of({ key, rules, cost }, nowUs)) {
        meter.refund(units, nowUs)
      }
    },
    carry: (key, rules, nowUs) => void counters.of({ key, rules, cost: 0 }, nowUs),
    block(key, untilUs) {
      for (const part of partsOf(key)) blocked.set(part, untilUs)
    },
    unblock(key) {
      for (const part of partsOf(key)) blocked.delete(part)
    },
    reset(key) {
      for (const part of partsOf(key)) {
        counters.forget(part)
        blocked.delete(part)
      }
    },
    clear() {
      counters.clear()
      blocked.clear()
    },
    size(nowUs) {
      const blockedNow = [...blocked.keys()].filter((part) => blocked.get(part)! > nowUs)
      return new Set([...counters.used(nowUs), ...blockedNow]).size
    },
  }
}
