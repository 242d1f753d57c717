import { type Cost, costsAny } from '../../core/cost.ts'
import type { Decision, RuleDecision } from '../../core/decision.ts'
import type { FieldKey } from '../../core/key.ts'
import type { Rule } from '../../core/rule.ts'
import { unjoined } from '../../rows/store-errors.ts'
import type { Store, Table, TableStats } from '../store.ts'

import {
  costIn,
  heldIn,
  type JointPart,
  type JointSet,
  joined,
  jointSet,
  noteHeld,
  summed,
} from './joint-set.ts'

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

  const use = (rules: readonly Rule[], off: readonly string[] = []) =>
    jointSet(rules, fields, off, (own, field) => tables[field].use(own))

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
      const now = look()
      // Others may have given units back meanwhile.
      return now.every(({ allowed }) => allowed) ? seen : now
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
    isShared: tables.some(({ isShared }) => isShared),
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

function addStats(sum: TableStats, one: TableStats): TableStats {
  return {
    rows: sum.rows + one.rows,
    maxKeys: sum.maxKeys,
    blocked: sum.blocked + one.blocked,
    evictions: sum.evictions + one.evictions,
    floored: sum.floored + one.floored,
  }
}
