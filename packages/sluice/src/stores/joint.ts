import { type Cost, costAt, costsAny } from '../core/cost.ts'
import type { Decision, RuleDecision } from '../core/decision.ts'
import type { Held } from '../core/held.ts'
import type { FieldKey } from '../core/key.ts'
import type { Rule } from '../core/rule.ts'
import { mixedDecision, sameDecision } from '../rows/decision-of.ts'
import { unjoined } from '../rows/store-errors.ts'
import type { RuleSet, Store, Table, TableStats } from './store.ts'

/** JointSet is the rules of a decision over several keys. */
export interface JointSet extends RuleSet {
  readonly parts: readonly JointPart[]
}

/** JointPart is the rules that count one field of the key. */
export interface JointPart {
  /** Which field of the key. */
  readonly field: number
  readonly set: RuleSet
  /** The place of each of its rules among those of the decision. */
  readonly places: readonly number[]
}

/**
 * createJointTable decides over several keys: `tables` has the table of each field. All rules admit, or
 * nothing stays spent. Tables that others may change meanwhile are first looked at, then spent from one by
 * one; where one refuses after all, the others are given back what was spent. `carries` tells that keys
 * may get other rules later.
 */
export function createJointTable(
  fields: readonly string[],
  tables: readonly Table[],
  carries: boolean,
): Table<JointSet, FieldKey> {
  const isExact = tables.every(({ ask }) => ask !== undefined)
  const { nowUs: readUs } = tables[0]

  const use = (rules: readonly Rule[]) =>
    jointSet(rules, fields, (own, field) => tables[field].use(own))

  function decide(
    set: JointSet,
    keys: FieldKey,
    cost: Cost,
    spend: boolean,
    atUs = readUs(),
  ): Decision {
    for (const part of set.parts) part.set.generation = set.generation
    if (isExact) return decideExactly(set, keys, cost, spend, atUs)
    const decisions = decideInTurn(set, keys, cost, spend, atUs)
    if (set.holds) noteHeld(set)
    return joined(set, cost, decisions)
  }

  /** The same instant for all tables, which do not change between the halves. */
  function decideExactly(
    set: JointSet,
    keys: FieldKey,
    cost: Cost,
    spend: boolean,
    atUs: number,
  ): Decision {
    const { parts } = set
    const passes = askAll(set, keys, cost, spend, atUs)
    if (spend && passes && costsAny(cost)) takeAll(set, keys, cost, atUs)
    const each: RuleDecision[] = []
    let blockedUs = 0
    for (let i = 0; i < parts.length; i += 1) {
      const { field, set: own, places } = parts[i]
      const units = costIn(cost, places)
      const us = tables[field].tell!(own, keys[field]!, units, passes, atUs, each, places)
      if (us > blockedUs) blockedUs = us
    }
    return summed(set, cost, each, passes, blockedUs)
  }

  function askAll(
    { parts }: JointSet,
    keys: FieldKey,
    cost: Cost,
    spend: boolean,
    atUs: number,
  ): boolean {
    let passes = true
    for (let i = 0; i < parts.length; i += 1) {
      const { field, set, places } = parts[i]
      const waitUs = tables[field].ask!(set, keys[field]!, costIn(cost, places), spend, atUs)
      if (waitUs > 0) passes = false
    }
    return passes
  }

  function takeAll(set: JointSet, keys: FieldKey, cost: Cost, atUs: number): void {
    for (let i = 0; i < set.parts.length; i += 1) {
      const { field, set: own, places } = set.parts[i]
      tables[field].take!(own, keys[field]!, costIn(cost, places), atUs)
    }
    if (set.holds) noteHeld(set)
  }

  function decideInTurn(
    { parts }: JointSet,
    keys: FieldKey,
    cost: Cost,
    spend: boolean,
    atUs: number,
  ): Decision[] {
    const decideOn = ({ field, set, places }: JointPart, spends: boolean) =>
      tables[field].decide(set, keys[field]!, costIn(cost, places), spends, atUs)
    const look = () => parts.map((part) => decideOn(part, false))
    const seen = look()
    if (!spend) return seen
    if (!seen.every(({ allowed }) => allowed)) return carries ? carried() : seen
    /** A refusal carries rows over to these rules, as a check of cost 0 does. */
    function carried(): Decision[] {
      for (const { field, set } of parts) tables[field].decide(set, keys[field]!, 0, true, atUs)
      return look()
    }
    const decisions: Decision[] = []
    for (const part of parts) {
      const decision = decideOn(part, true)
      decisions.push(decision)
      if (decision.allowed) continue
      for (const spent of parts.slice(0, decisions.length - 1)) {
        giveBack(spent, keys[spent.field]!, costIn(cost, spent.places), atUs)
      }
      return parts.map((each) => (each === part ? decision : decideOn(each, false)))
    }
    return decisions
  }

  function giveBack({ field, set }: JointPart, key: string, cost: Cost, atUs: number): void {
    const held = { cost, spentUs: atUs, holds: set.held }
    const change = typeof cost === 'number' ? -cost : cost.map((units) => -units)
    tables[field].finish(set, key, held, change, atUs)
  }

  /** Calls `visit` with the table and the key of each field that the key has. */
  function each(keys: FieldKey, visit: (table: Table, key: string) => void): void {
    for (const [field, table] of tables.entries()) {
      const key = keys[field]
      if (key !== null) visit(table, key)
    }
  }

  return {
    nowUs: readUs,
    use,
    decide,
    allow(set, keys, cost, nowUs) {
      if (!isExact) return decide(set, keys, cost, true, nowUs).allowed
      const atUs = nowUs ?? readUs()
      const passes = askAll(set, keys, cost, true, atUs)
      if (passes && costsAny(cost)) takeAll(set, keys, cost, atUs)
      return passes
    },
    punish(set, keys, cost, nowUs) {
      for (const { field, set: own, places } of set.parts) {
        if (!own.penalty) continue
        const units = costIn(cost, places)
        const { allowed, source } = tables[field].decide(own, keys[field]!, units, false, nowUs)
        if (!allowed && source !== 'blocked') tables[field].punish(own, keys[field]!, units, nowUs)
      }
    },
    charge(set, keys, cost, nowUs) {
      for (const { field, set: own, places } of set.parts) {
        tables[field].charge(own, keys[field]!, costIn(cost, places), nowUs)
      }
    },
    refund(set, keys, cost, nowUs, spentUs) {
      for (const { field, set: own, places } of set.parts) {
        tables[field].refund(own, keys[field]!, costIn(cost, places), nowUs, spentUs)
      }
    },
    finish(set, keys, held, change, nowUs) {
      for (const { field, set: own, places } of set.parts) {
        const own_ = heldIn(held, places)
        tables[field].finish(own, keys[field]!, own_, costIn(change, places), nowUs)
      }
    },
    extend(set, keys, held, nowUs) {
      const isExtended = set.parts.every(({ field, set: own, places }) =>
        tables[field].extend(own, keys[field]!, heldIn(held, places), nowUs),
      )
      if (isExtended) noteHeld(set)
      return isExtended
    },
    block: (keys, untilUs, nowUs) => each(keys, (table, key) => table.block(key, untilUs, nowUs)),
    unblock: (keys) => each(keys, (table, key) => table.unblock(key)),
    reset: (keys, nowUs) => each(keys, (table, key) => table.reset(key, nowUs)),
    clear() {
      for (const table of tables) table.clear()
    },
    rulesOf(keys) {
      const rules: Rule[] = []
      each(keys, (table, key) => rules.push(...table.rulesOf(key)))
      return rules
    },
    *keys(nowUs) {
      for (const [field, table] of tables.entries()) {
        for (const key of table.keys(nowUs)) {
          yield fields.map((_, i) => (i === field ? key : null))
        }
      }
    },
    size: (nowUs) => tables.reduce((sum, table) => sum + table.size(nowUs), 0),
    stats() {
      const [first, ...others] = tables.map((table) => table.stats())
      return others.reduce(addStats, first)
    },
  }
}

/** openJointTable opens the tables of these fields, and decides over them as one. */
export function openJointTable(
  store: Store,
  limiter: string,
  ruleLists: readonly (readonly Rule[])[],
  fields: readonly string[],
  mayChange: boolean,
): Table<JointSet, FieldKey> {
  const tables = fields.map((field) => {
    const own = ruleLists.map((rules) => rules.filter(({ by = fields[0] }) => by === field))
    return store.open(tableName(limiter, field), own, mayChange)
  })
  const isJoint = tables.length === 1 || tables.every(({ ask }) => ask !== undefined)
  const slow = ruleLists.flat().find(({ algorithm }) => algorithm.delays)
  if (!isJoint && slow) throw unjoined(slow)
  return createJointTable(fields, tables, mayChange)
}

/** tableName is what a store knows the rows of a field by. A limiter's name has no tab. */
function tableName(limiter: string, field: string): string {
  return `${limiter}\t${field}`
}

/** jointSet makes rules ready, those of each field by `use`. */
export function jointSet(
  all: readonly Rule[],
  fields: readonly string[],
  use: (own: readonly Rule[], field: number) => RuleSet,
): JointSet {
  const rules = all.filter(({ algorithm }) => !algorithm.punish)
  const parts = fields.flatMap((name, field): JointPart[] => {
    const isOwn = ({ by = fields[0] }: Rule) => by === name
    const own = all.filter(isOwn)
    if (own.length === 0) return []
    const places = rules.filter(isOwn).map((rule) => rules.indexOf(rule))
    return [{ field, set: use(own, field), places }]
  })
  return {
    rules,
    parts,
    penalty: parts.find(({ set }) => set.penalty)?.set.penalty,
    capacity: Math.min(...rules.map(({ capacity }) => capacity)),
    delays: parts.some(({ set }) => set.delays),
    holds: parts.some(({ set }) => set.holds),
    generation: 0,
    held: new Float64Array(2 * rules.length),
  }
}

/** costIn is the part of a cost that is for the rules at some places. */
export function costIn(cost: Cost, places: readonly number[]): Cost {
  if (typeof cost === 'number') return cost
  return places.length === 1 ? cost[places[0]] : places.map((place) => cost[place])
}

/** heldIn is what a permit holds by the rules at some places. */
export function heldIn({ cost, spentUs, holds }: Held, places: readonly number[]): Held {
  return {
    cost: places.map((place) => costAt(cost, place)),
    // Rules of one row are spent at one instant.
    spentUs: costAt(spentUs, places[0]),
    holds: Float64Array.from(
      { length: 2 * places.length },
      (_, i) => holds[2 * places[i >> 1] + (i & 1)],
    ),
  }
}

/** noteHeld notes in a set what its parts hold. */
export function noteHeld({ parts, held }: JointSet): void {
  for (const { set, places } of parts) {
    for (const [i, place] of places.entries()) {
      held[2 * place] = set.held[2 * i]
      held[2 * place + 1] = set.held[2 * i + 1]
    }
  }
}

/** joined makes one decision of those of its parts. */
export function joined(set: JointSet, cost: Cost, decisions: readonly Decision[]): Decision {
  const { rules, parts } = set
  let allowed = true
  let blockedUs = 0
  for (const decision of decisions) {
    if (!decision.allowed) allowed = false
    if (decision.source === 'blocked') {
      blockedUs = Math.max(blockedUs, Math.round(decision.retryAfterMs * 1_000))
    }
  }
  const each: RuleDecision[] = new Array(rules.length)
  for (let i = 0; i < parts.length; i += 1) {
    const { places } = parts[i]
    for (let j = 0; j < places.length; j += 1) {
      const rule = decisions[i].rules[j]
      each[places[j]] = allowed || rule.delayMs === 0 ? rule : { ...rule, delayMs: 0 }
    }
  }
  return summed(set, cost, each, allowed, blockedUs)
}

function summed(
  { rules, holds }: JointSet,
  cost: Cost,
  each: readonly RuleDecision[],
  allowed: boolean,
  blockedUs: number,
): Decision {
  if (holds || typeof cost !== 'number') return mixedDecision(rules, each, allowed, blockedUs)
  return sameDecision(each, allowed, blockedUs)
}

function addStats(sum: TableStats, one: TableStats): TableStats {
  return {
    rows: sum.rows + one.rows,
    maxKeys: sum.maxKeys,
    blocked: sum.blocked + one.blocked,
    evictions: sum.evictions + one.evictions,
    floored: sum.floored + one.floored,
  }
}
