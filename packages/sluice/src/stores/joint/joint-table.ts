import type { FieldKey } from '../../core/key.ts'
import type { Rule } from '../../core/rule.ts'
import { unjoined } from '../../rows/store-errors.ts'
import type { Store, Table, TableStats } from '../store.ts'
import { decideExactly } from './joint-exact.ts'
import { costIn, heldIn, type JointSet, jointSet, noteHeld } from './joint-set.ts'
import { decideInTurns } from './joint-turns.ts'

type JointTable = Table<JointSet, FieldKey>

/** createJointTable creates a table for keys with fields. `tables` has the table of each field. */
export function createJointTable(fields: readonly string[], tables: readonly Table[]): JointTable {
  const isExact = tables.every(({ ask }) => ask !== undefined)
  const decider = isExact ? decideExactly(tables) : decideInTurns(tables)
  const { nowUs } = tables[0]
  return {
    isShared: tables.some(({ isShared }) => isShared),
    nowUs,
    use: (rules, off = []) => jointSet(rules, fields, off, (own, field) => tables[field].use(own)),
    allow: (set, keys, cost, atUs = nowUs()) => decider.allow(set, keys, cost, atUs),
    decide(set, keys, cost, spend, atUs = nowUs()) {
      for (const part of set.parts) part.set.generation = set.generation
      return decider.decide(set, keys, cost, spend, atUs)
    },
    ...chargesOf(tables),
    ...keysOf(fields, tables),
  }
}

/** Creates the verbs that change units without a decision, field by field. */
function chargesOf(
  tables: readonly Table[],
): Pick<JointTable, 'punish' | 'charge' | 'refund' | 'finish' | 'extend'> {
  return {
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
        const part = heldIn(held, places)
        tables[field].finish(own, keys[field]!, part, costIn(change, places), nowUs)
      }
    },
    extend(set, keys, held, nowUs) {
      const isExtended = set.parts.every(({ field, set: own, places }) =>
        tables[field].extend(own, keys[field]!, heldIn(held, places), nowUs),
      )
      if (isExtended) noteHeld(set)
      return isExtended
    },
  }
}

/** Creates the verbs that concern the parts of a key independent of rules, and those for all keys. */
function keysOf(
  fields: readonly string[],
  tables: readonly Table[],
): Omit<
  JointTable,
  'isShared' | 'nowUs' | 'use' | 'allow' | 'decide' | keyof ReturnType<typeof chargesOf>
> {
  function each(keys: FieldKey, visit: (table: Table, key: string) => void): void {
    for (const [field, table] of tables.entries()) {
      const key = keys[field]
      if (key !== null) visit(table, key)
    }
  }

  return {
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

/** openJointTable opens the tables of these fields, and combines them. */
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
  return createJointTable(fields, tables)
}

/** tableName returns the name of a field's table in a store. Limiter names contain no tabs. */
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
