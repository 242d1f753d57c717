import type { Floor } from '../../rows/floor.ts'
import { type Floors, raiseToRow } from '../../rows/floors.ts'
import type { Layout } from '../../rows/layout.ts'
import { createLists } from '../../rows/lists.ts'
import type { Bucket } from './buckets.ts'
import { createFloorCopy } from './floor-copy.ts'
import { areSame, createFloorRows, type FloorRow } from './floor-rows.ts'
import type { Overflow } from './overflow.ts'
import type { Region } from './region.ts'
import type { SharedTags } from './shared-tags.ts'

/**
 * SharedFloors keeps each shard's floor in its own bucket, and entries that do not fit in the
 * overflow. Changes are private until `commit`. To forgive nothing if a thread is terminated in
 * between, a floor is committed before the row that raised it is evicted.
 */
export interface SharedFloors extends Floors {
  /** Whether a floor was read since `begin`. */
  isOpen: boolean
  /** Drops uncommitted changes; the next use reads the floor again. */
  begin(): void
  /** Writes the changes; false if another thread has changed the floor since: then begin again. */
  commit(): boolean
}

/**
 * createSharedFloors creates access to floors through `bucket`. Their buckets start at number
 * `homes`.
 */
export function createSharedFloors(
  { homes, stride }: Region,
  words: Int32Array,
  cells: Float64Array,
  bucket: Bucket,
  overflow: Overflow,
  layout: Layout,
  book: SharedTags,
): SharedFloors {
  const lists = createLists()
  const fence = new Int32Array(new SharedArrayBuffer(4))
  const rows = createFloorRows(words, cells, bucket, stride)
  const copy = createFloorCopy(stride, overflow, layout, book, lists)
  let shardRead = -1
  let before: readonly FloorRow[] = []
  let floor: Floor | undefined

  const isEmpty = () => bucket.live[0] === 0 && bucket.live[1] === 0

  function read(shard: number): void {
    if (shard === shardRead) return
    floors.isOpen = true
    shardRead = shard
    floor = undefined
    // Fence: read the floor after the rows. Rows are evicted after their floor is raised, so none
    // is missed.
    Atomics.store(fence, 0, 0)
    Atomics.load(fence, 0)
    bucket.read(homes + shard)
  }

  /** Returns the floor of a shard as a mutable copy. */
  function opened(shard: number): Floor {
    read(shard)
    if (floor) return floor
    before = rows.read(homes + shard)
    floor = copy.open(before)
    return floor
  }

  /** Writes the rows into free slots. */
  function write(near: readonly FloorRow[]): boolean {
    const live = new Int32Array(2)
    let slot = 0
    for (const row of near) slot = rows.write(row, live, slot)
    return bucket.commit(live[0], live[1])
  }

  // Plain fields only: an accessor would switch the object to V8's slow dictionary mode.
  const floors: SharedFloors = {
    isOpen: false,
    begin() {
      floors.isOpen = false
      shardRead = -1
      floor = undefined
    },
    of(shard) {
      read(shard)
      return isEmpty() && !floor ? undefined : opened(shard)
    },
    raise(shard, cells, base, tag, nowUs) {
      raiseToRow(opened(shard), layout, lists, cells, base, tag, nowUs)
    },
    commit() {
      if (!floor) return true
      const { near, far } = copy.pack()
      if (far.length === 0 && areSame(near, before)) return true
      return bucket.change(
        () => far.every(({ row, seen }) => overflow.replace(row, seen)) && write(near),
      )
    },
    clear() {},
  }
  return floors
}
