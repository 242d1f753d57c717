import type { Bucket } from './buckets.ts'
import { createFloorRows, type FloorRow, isSame } from './floor-rows.ts'
import { OVERFLOW_TAGS, type Region } from './region.ts'
import { isLive, setLive, tagAt } from './slots.ts'

/**
 * Overflow keeps what floors have no room for, all shards' together: a row for each tag that there
 * can be. So it never overflows itself, and a floor holds as many rules as the table can tell apart.
 */
export interface Overflow {
  /** All rows. Those of one bucket are as they are at one instant. */
  read(): FloorRow[]
  /** Writes a tag's row; false unless the one there is still `seen`: then read again. */
  replace(row: FloorRow, seen: FloorRow | undefined): boolean
}

/** createOverflow reads and writes through `bucket`. */
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
