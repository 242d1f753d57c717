import { type Cost, costsAny } from '../core/cost.ts'
import type { Decision } from '../core/decision.ts'
import type { Blocks } from './blocks.ts'
import { decisionOf } from './decision-of.ts'
import type { LaidRules } from './layout.ts'
import { admitRow, decideRow, type Row } from './row.ts'
import type { Rows } from './rows.ts'
import type { Start } from './start.ts'

/**
 * SlowPath decides for keys without a row, keys whose row was written for other rules, and keys that
 * may be blocked.
 */
export interface SlowPath {
  /** The number of keys that have started from the floor. */
  floored: number
  /** The row of the last decision: the start for keys without one. */
  decided: Row
  /** Returns how long a key is still blocked, in microseconds. */
  blockedUs(key: string, nowUs: number): number
  /** Moves the cursor to the key's row, for any rules; false if it has none. */
  seek(key: string): boolean
  /** Moves the cursor to the key's row and carries it over to these rules; false if it has none. */
  find(set: LaidRules, key: string, nowUs: number): boolean
  /** Inserts the start as the row of the key that was just looked up. */
  insert(key: string, tag: number, nowUs: number): void
  /** Decides for the key that was just looked up. Returns the wait, including that of a block. */
  decide(
    set: LaidRules,
    key: string,
    cost: Cost,
    spend: boolean,
    isKnown: boolean,
    nowUs: number,
  ): number
  /** Does the same, and returns the full decision. */
  decision(
    set: LaidRules,
    key: string,
    cost: Cost,
    spend: boolean,
    isKnown: boolean,
    nowUs: number,
  ): Decision
}

/** createSlowPath creates the slow path of a table. */
export function createSlowPath(rows: Rows, start: Start, blocks: Blocks): SlowPath {
  function seek(key: string): boolean {
    return rows.aim(key) || rows.find(key)
  }

  function adopt(set: LaidRules, nowUs: number): void {
    const tag = start.adopt(set, rows.cells, rows.base, rows.tag, nowUs)
    if (tag !== rows.tag) rows.retag(tag)
  }

  function blockedUs(key: string, nowUs: number): number {
    return blocks.size > 0 ? blocks.leftUs(rows.idOf(key), nowUs) : 0
  }

  /** Decides for a key without a row. The key gets a row only once it spends. */
  function enter(set: LaidRules, key: string, cost: Cost, spend: boolean, nowUs: number): number {
    start.prepare(set, nowUs)
    slowPath.decided = start
    const { onFloor } = start
    const wait = decideRow(set, start, cost, spend && !onFloor, nowUs)
    if (!spend || wait > 0 || !costsAny(cost) || set.stateless) return wait
    if (onFloor) {
      start.begin(set, nowUs)
      admitRow(set, start, cost, nowUs)
    }
    slowPath.insert(key, set.tag, nowUs)
    slowPath.decided = rows
    return wait
  }

  const slowPath: SlowPath = {
    floored: 0,
    decided: rows,
    seek,
    blockedUs,

    find(set, key, nowUs) {
      if (!seek(key)) return false
      if (rows.tag !== set.tag) adopt(set, nowUs)
      return true
    },

    insert(key, tag, nowUs) {
      if (start.onFloor) slowPath.floored += 1
      rows.insert(key, start.cells, tag, nowUs, start.onFloor)
      start.release()
    },

    decide(set, key, cost, spend, isKnown, nowUs) {
      const blocked = blockedUs(key, nowUs)
      const spends = spend && blocked === 0
      if (!isKnown) return enter(set, key, cost, spends, nowUs) + blocked
      slowPath.decided = rows
      if (rows.tag !== set.tag && !spend) {
        // A peek must not carry the row over.
        start.preview(set, nowUs)
        slowPath.decided = start
      } else if (rows.tag !== set.tag) {
        adopt(set, nowUs)
      }
      return decideRow(set, slowPath.decided, cost, spends, nowUs) + blocked
    },

    decision(set, key, cost, spend, isKnown, nowUs) {
      slowPath.decide(set, key, cost, spend, isKnown, nowUs)
      return decisionOf(set, slowPath.decided, cost, blockedUs(key, nowUs), nowUs)
    },
  }
  return slowPath
}
