import type { Rule } from '../core/rule.ts'
import { createMeter, type Hold, type Meter } from './meters.ts'

/** ModelKey is a key: a string, or an object with the fields that rules name in `by`. */
export type ModelKey = string | Readonly<Record<string, string | null>>

/** ModelCost is units for every rule, or for each rule by its name. */
export type ModelCost = number | Readonly<Record<string, number>>

/** ModelCall is a key, the rules that count it, and a cost. */
export interface ModelCall {
  readonly key: ModelKey
  readonly rules: readonly Rule[]
  readonly cost: ModelCost
}

/** Counter is a rule, the meter of the part of a key that it counts, and the units of a call. */
export interface Counter {
  readonly rule: Rule
  readonly meter: Meter
  readonly units: number
}

/** Counters holds the meters of all parts of keys. */
export interface Counters {
  /**
   * Returns the meters of a call, carried over to its rules. Rules of a null field have none. A
   * peek gets copies and changes nothing.
   */
  of(call: ModelCall, nowUs: number, isPeek?: boolean): Counter[]
  forget(part: string): void
  clear(): void
  /** Returns the parts that are not fresh. */
  used(nowUs: number): string[]
}

/** createCounters creates counters without any meters. */
export function createCounters(): Counters {
  const meters = new Map<string, Map<string, Meter>>()
  return {
    of({ key, rules, cost }, nowUs, isPeek = false) {
      return rules.flatMap((rule) => {
        const part = countedBy(rule, key)
        if (part === undefined) return []
        const own = meters.get(part) ?? new Map<string, Meter>()
        meters.set(part, own)
        const id = JSON.stringify([rule.name, rule.algorithm.name])
        const kept = own.get(id) ?? createMeter(rule)
        own.set(id, kept)
        const meter = isPeek ? kept.copy() : kept
        meter.carry(rule, nowUs)
        return [{ rule, meter, units: unitsOf(rule, cost) }]
      })
    },
    forget: (part) => void meters.delete(part),
    clear: () => meters.clear(),
    used: (nowUs) =>
      [...meters.keys()].filter((part) =>
        [...meters.get(part)!.values()].some((meter) => !meter.isFresh(nowUs)),
      ),
  }
}

/** spendAll spends the units of each rule, and stores each hold by the name of its rule. */
export function spendAll(all: readonly Counter[], nowUs: number, holds?: Map<string, Hold>): void {
  for (const { rule, meter, units } of all) {
    if (units === 0) continue
    if (meter.hold) holds?.set(rule.name, meter.hold(units, nowUs))
    else meter.spend(units, nowUs)
  }
}

/** unitsOf returns the units of a cost for a rule. */
export function unitsOf({ name }: Rule, cost: ModelCost): number {
  return typeof cost === 'number' ? cost : cost[name]
}

/** countedBy returns the part of a key that a rule counts; undefined if its field is null. */
export function countedBy({ by }: Pick<Rule, 'by'>, key: ModelKey): string | undefined {
  if (typeof key === 'string') return partOf('', key)
  if (by === undefined || by === 'global') return partOf(by ?? '', '')
  const value = key[by]
  return value === null ? undefined : partOf(by, value)
}

/** partsOf returns the parts of a key, or of some of its fields. */
export function partsOf(key: ModelKey): string[] {
  if (typeof key === 'string') return [partOf('', key)]
  return Object.entries(key).flatMap(([by, value]) => (value === null ? [] : [partOf(by, value)]))
}

/** partOf returns the name of one part of a key. For a string key, `by` is empty. */
export function partOf(by: string, value: string): string {
  return JSON.stringify([by, value])
}
