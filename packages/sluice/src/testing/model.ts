import type { Decision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import type { PenaltyOptions } from '../limiter/penalty.ts'
import type { Hold } from './meters.ts'
import {
  type Counter,
  countedBy,
  createCounters,
  type ModelCall,
  type ModelCost,
  type ModelKey,
  partOf,
  partsOf,
  spendAll,
} from './model-counters.ts'
import { first, standing, summary } from './model-decision.ts'
import { modelPenalty } from './model-penalty.ts'
import { type ModelPermit, modelPermit } from './model-permit.ts'

/** The arguments that all verbs share. */
type OfCall = [key: ModelKey, rules: readonly Rule[], cost: ModelCost, nowUs: number]

/**
 * Model is the specification as slow, obviously correct code. It keeps lists of instants and exact
 * fractions, and answers one question: would n units pass at this instant? It finds waits and
 * remaining units by search, never by arithmetic. Stores are compared with it.
 */
export interface Model {
  /** Decides, and spends if `spend` is set and no rule refuses. */
  decide(...call: [...OfCall, spend: boolean]): Decision
  /**
   * Decides and spends, and returns a permit if the call is admitted. The refusal of a queued retry
   * (`isCounted` false) does not count towards the penalty.
   */
  acquire(...call: [...OfCall, isCounted?: boolean]): {
    readonly decision: Decision
    readonly permit?: ModelPermit
  }
  /** Debits `cost` even if it does not fit. */
  charge(...call: OfCall): void
  /** Undoes the latest spends. */
  refund(...call: OfCall): void
  /** Carries the key over to these rules, as a refused request does. Spends nothing. */
  carry(key: ModelKey, rules: readonly Rule[], nowUs: number): void
  /** Blocks the key. For keys with fields, this and the next two verbs apply to each given field. */
  block(key: ModelKey, untilUs: number): void
  /** Lifts the block of the key. */
  unblock(key: ModelKey): void
  /** Makes the key unused and lifts its block. */
  reset(key: ModelKey): void
  /** Removes every key and block. */
  clear(): void
  /** Returns the instants at which refusals of this key, and its penalties, are forgotten. */
  forgottenUs(key: ModelKey): number[]
  /** Counts the keys, or parts of keys, that are blocked or not fresh. */
  size(nowUs: number): number
}

/** createModel creates a model without keys, for limiters with this penalty. */
export function createModel(options?: PenaltyOptions): Model {
  const counters = createCounters()
  const blocked = new Map<string, number>()
  const penalty = options && modelPenalty(options)

  function blockedMs({ key }: ModelCall, nowUs: number): number {
    const ends = partsOf(key).map((part) => blocked.get(part) ?? 0)
    return Math.max(0, ...ends.map((us) => us - nowUs)) / 1_000
  }

  /** Counts a refusal if rules of the penalty's field refuse, unless that field is blocked. */
  function punish({ key }: ModelCall, refusing: readonly Counter[], nowUs: number): void {
    if (!penalty) return
    const part = typeof key === 'string' ? partOf('', key) : countedBy(penalty, key)
    if (part === undefined || (blocked.get(part) ?? 0) > nowUs) return
    if (!refusing.some(({ rule }) => countedBy(rule, key) === part)) return
    const untilUs = penalty.refused(part, nowUs)
    if (untilUs !== undefined) blocked.set(part, untilUs)
  }

  function decide(
    call: ModelCall,
    nowUs: number,
    spend: boolean,
    holds?: Map<string, Hold>,
    isCounted = true,
  ): Decision {
    const all = counters.of(call, nowUs, !spend)
    const waits = all.map(({ meter, units }) => first((us) => meter.passes(units, nowUs + us)))
    const delays = all.map(({ rule, meter, units }) =>
      units > 0 && rule.algorithm.delays ? first((us) => meter.isFresh(nowUs + us)) : 0,
    )
    const allowed = blockedMs(call, nowUs) === 0 && waits.every((us) => us === 0)
    if (allowed && spend) spendAll(all, nowUs, holds)
    const refusing = all.filter((_, i) => waits[i] > 0)
    if (spend && isCounted) punish(call, refusing, nowUs)
    const ms = blockedMs(call, nowUs)
    const each = all.map(({ rule, meter }, i) => {
      const delayMs = allowed ? delays[i] / 1_000 : 0
      return { ...standing(rule, meter, nowUs, waits[i] / 1_000), delayMs }
    })
    const isHeld = all.map(({ meter }) => meter.hold !== undefined)
    return { allowed, ...summary(each, isHeld, ms, typeof call.cost === 'number') }
  }

  /** Charges the rates of one part of a key. Skips the part if there is nothing to charge. */
  function chargePart(call: ModelCall, nowUs: number): void {
    const charged = counters.of(call, nowUs, true).filter(({ meter }) => !meter.hold)
    if (charged.every(({ units }) => units === 0)) return
    const rates = counters.of(call, nowUs).filter(({ meter }) => !meter.hold)
    spendAll(rates, nowUs)
  }

  return {
    decide: (key, rules, cost, nowUs, spend) => decide({ key, rules, cost }, nowUs, spend),
    acquire(key, rules, cost, nowUs, isCounted) {
      const call = { key, rules, cost }
      const holds = new Map<string, Hold>()
      const decision = decide(call, nowUs, true, holds, isCounted)
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
        penalty?.forget(part)
      }
    },
    clear() {
      counters.clear()
      blocked.clear()
      penalty?.clear()
    },
    forgottenUs: (key) => partsOf(key).flatMap((part) => penalty?.instantsUs(part) ?? []),
    size(nowUs) {
      const blockedNow = [...blocked.keys()].filter((part) => blocked.get(part)! > nowUs)
      const punished = penalty?.used(nowUs) ?? []
      return new Set([...counters.used(nowUs), ...blockedNow, ...punished]).size
    },
  }
}
