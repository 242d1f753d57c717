import type { Bucket } from './buckets.ts'
import { createFloorRows, type FloorRow, isSame } from './floor-rows.ts'
import { OVERFLOW_TAGS, type Region } from './region.ts'
import { isLive, setLive, tagAt } from './slots.ts'

/**
 * Overflow keeps floor entries that do not fit into their shard's bucket, for all shards together.
 * It has a row for every possible tag, so it never overflows itself, and a floor can hold every
 * rule of the table.
 */
export interface Overflow {
  /** Returns all rows. Rows of one bucket are consistent, as of one instant. */
  read(): FloorRow[]
  /** Replaces a tag's row if it still equals `seen`; else returns false: then read again. */
  replace(row: FloorRow, seen: FloorRow | undefined): boolean
}

/** createOverflow creates access to the overflow through `bucket`. */
export function createOverflow(
  { overflowAt, buckets, stride }: Region,
  words: Int32Array,
  cells: Float64Array,
  bucket: Bucket,
): Overflow {
  const rows = createFloorRows(words, cells, bucket, stride)
  const live = new Int32Array(2)

  function slotOf(tag: number): number {
    for (let slot = 0; slot <= OVERFLOW_TAGS; slot += 1) {
      if (isLive(bucket.live, slot) && tagAt(words, bucket, slot) === tag) return slot
    }
    return -1
  }

  return {
    read() {
      const all: FloorRow[] = []
      for (let index = overflowAt; index < buckets; index += 1) all.push(...rows.read(index))
      return all
    },
    replace(row, seen) {
      const found = rows
        .read(overflowAt + Math.floor(row.tag / OVERFLOW_TAGS))
        .find(({ tag }) => tag === row.tag)
      if (!isSame(found, seen)) return false
      return bucket.change(() => {
        const slot = slotOf(row.tag)
        live.set(bucket.live)
        rows.write(row, live, 0)
        if (slot >= 0) setLive(live, slot, false)
        return bucket.commit(live[0], live[1])
      })
    },
  }
}
