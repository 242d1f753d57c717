import type { Blocks } from './blocks.ts'
import { isOnlyFor, isRaised } from './floor.ts'
import type { Floors } from './floors.ts'
import type { LaidRules, Layout } from './layout.ts'
import type { Lists } from './lists.ts'
import { stateOf } from './row.ts'
import type { RowCare, Rows } from './rows.ts'
import { dropLists } from './start.ts'

/** Upkeep implements the callbacks of row storage, and counts evictions. */
export interface Upkeep extends RowCare {
  /** The last set with a single plain rule. Rows with its tag take a fast path. */
  usual: LaidRules | undefined
  evictions: number
}

/** createUpkeep takes a getter for the floors: they need the rows, which need the upkeep first. */
export function createUpkeep(layout: Layout, lists: Lists, floorsOf: () => Floors): Upkeep {
  const upkeep: Upkeep = {
    lists,
    usual: undefined,
    evictions: 0,

    freshAtUs(cells, base, tag) {
      const { usual } = upkeep
      if (usual !== undefined && tag === usual.tag) {
        const rule = usual.only!
        return someTime(rule.algorithm.freshAtUs(cells, base + usual.onlyAt, rule))
      }
      const written = layout.written(tag)
      let latest = 0
      for (let i = 0; i < written.length; i += 1) {
        const { column, rule } = written[i]
        const at = base + layout.columns[column].at
        const state = stateOf(rule, cells, at, lists)
        const freshUs = someTime(rule.algorithm.freshAtUs(state, at, rule))
        if (freshUs > latest) latest = freshUs
      }
      return latest
    },

    evicted(cells, base, tag, shard, nowUs) {
      upkeep.evictions += 1
      const floors = floorsOf()
      const { usual } = upkeep
      if (usual !== undefined && tag === usual.tag) {
        const rule = usual.only!
        const floor = floors.of(shard)
        if (floor !== undefined && isOnlyFor(floor, rule) && isRaised(floor.only!, nowUs)) {
          rule.algorithm.merge(floor.only!.state, 0, cells, base + usual.onlyAt, rule, nowUs)
          return
        }
      }
      floors.raise(shard, cells, base, tag, nowUs)
    },

    dropped: (cells, base) => dropLists(layout, lists, cells, base),
  }
  return upkeep
}

/**
 * Caps a fresh time at the largest safe integer: user-defined algorithms may return Infinity or
 * NaN.
 */
function someTime(us: number): number {
  return us < Number.MAX_SAFE_INTEGER ? us : Number.MAX_SAFE_INTEGER
}

/** eachInUse calls `visit` for the row of each key that is blocked or not fresh. */
export function eachInUse(
  rows: Rows,
  blocks: Blocks,
  { freshAtUs }: RowCare,
  nowUs: number,
  visit: () => void,
): void {
  rows.each(() => {
    const inUse = freshAtUs(rows.cells, rows.base, rows.tag) > nowUs
    if (inUse || (blocks.size > 0 && blocks.leftUs(rows.id(), nowUs) > 0)) visit()
  })
}

/** blockedOnly returns the ids of blocked keys that have no row. */
export function blockedOnly(rows: Rows, blocks: Blocks, nowUs: number): string[] {
  return [...blocks.keys()].filter((id) => blocks.leftUs(id, nowUs) > 0 && !rows.hasId(id))
}
