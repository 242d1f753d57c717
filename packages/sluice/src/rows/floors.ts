import { createFloor, type Floor } from './floor.ts'
import type { Layout } from './layout.ts'
import type { Lists } from './lists.ts'
import { stateOf } from './row.ts'

/** Floors holds one floor per shard of a table. */
export interface Floors {
  /** Raises the floor of a shard to a row that is being evicted. */
  raise(shard: number, cells: Float64Array, base: number, tag: number, nowUs: number): void
  /** Returns the floor of a shard, if it was ever raised. */
  of(shard: number): Floor | undefined
  clear(): void
}

/** createFloors creates the floors of `shards` shards, on demand. */
export function createFloors(shards: number, layout: Layout, lists: Lists): Floors {
  const floors: (Floor | undefined)[] = Array.from({ length: shards })
  return {
    raise(shard, cells, base, tag, nowUs) {
      const floor = floors[shard] ?? createFloor(lists.all[0])
      floors[shard] = floor
      raiseToRow(floor, layout, lists, cells, base, tag, nowUs)
    },
    of: (shard) => floors[shard],
    clear: () => void floors.fill(undefined),
  }
}

/** raiseToRow makes a floor at least as strict as each column of a row that is being evicted. */
export function raiseToRow(
  floor: Floor,
  layout: Layout,
  lists: Lists,
  cells: Float64Array,
  base: number,
  tag: number,
  nowUs: number,
): void {
  const written = layout.written(tag)
  for (let i = 0; i < written.length; i += 1) {
    const { column, rule } = written[i]
    const at = base + layout.columns[column].at
    const state = stateOf(rule, cells, at, lists)
    if (rule.algorithm.freshAtUs(state, at, rule) > nowUs) {
      floor.raise(column, rule, state, at, nowUs)
    }
  }
}
