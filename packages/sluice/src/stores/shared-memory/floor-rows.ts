import type { Bucket } from './buckets.ts'
import { TAG_MASK } from './region.ts'
import { cellsAt, eachLive, isLive, setLive } from './slots.ts'

/** FloorRow is a slot of a floor's bucket: states of some columns, written by the rules of a tag. */
export interface FloorRow {
  readonly tag: number
  readonly cells: Float64Array
}

/** FloorRows reads and writes the rows of a floor's bucket. */
export interface FloorRows {
  /** Copies the rows of a bucket consistently, as of one instant. */
  read(index: number): FloorRow[]
  /** Writes a row into the first free slot from `slot` on, marks it in `live`, and returns it. */
  write(row: FloorRow, live: Int32Array, slot: number): number
}

/** createFloorRows creates access to floor rows through `bucket`. A row has `stride` cells. */
export function createFloorRows(
  words: Int32Array,
  cells: Float64Array,
  bucket: Bucket,
  stride: number,
): FloorRows {
  function copied(): FloorRow[] {
    const rows: FloorRow[] = []
    eachLive(bucket.live, (slot) => {
      const from = cellsAt(bucket, slot)
      const tag = words[bucket.slotAt(slot) + 1] & TAG_MASK
      rows.push({ tag, cells: cells.slice(from, from + stride) })
    })
    return rows
  }

  return {
    read(index) {
      for (;;) {
        bucket.read(index)
        const rows = copied()
        if (bucket.isUnchanged()) return rows
      }
    },
    write(row, live, from) {
      let slot = from
      while (isLive(bucket.live, slot) || isLive(live, slot)) slot += 1
      words[bucket.slotAt(slot) + 1] = row.tag
      cells.set(row.cells, cellsAt(bucket, slot))
      setLive(live, slot, true)
      return slot
    },
  }
}

/** areSame tells whether two lists hold equal rows in the same order. */
export function areSame(some: readonly FloorRow[], others: readonly FloorRow[]): boolean {
  return some.length === others.length && some.every((row, i) => isSame(row, others[i]))
}

/** isSame tells whether two rows are equal, or both missing. */
export function isSame(one: FloorRow | undefined, other: FloorRow | undefined): boolean {
  if (!one || !other) return one === other
  return one.tag === other.tag && one.cells.every((cell, i) => cell === other.cells[i])
}
