import { MOST_UNITS } from '../../core/cost.ts'
import type { Rule } from '../../core/rule.ts'
import { createFloor, type Floor, type FloorEntry } from '../../rows/floor.ts'
import { type Floors, raiseToRow } from '../../rows/floors.ts'
import type { Layout } from '../../rows/layout.ts'
import { createLists } from '../../rows/lists.ts'
import type { Bucket } from './buckets.ts'
import { BLOCK_TAG, type Region, SLOTS } from './region.ts'
import { eachLive, isLive, setLive } from './slots.ts'

/** New rows are written beside the old ones, so these are at most half the slots. */
const MOST_ROWS = SLOTS / 2 - 1

/** FloorRow is one slot of a floor's bucket: a state for some columns, in the figures of a tag. */
interface FloorRow {
  readonly tag: number
  readonly cells: Float64Array
}

/**
 * SharedFloors keeps each shard's floor in a bucket of its own. What is raised or carried over is
 * private until `commit`. A floor that is lost half way would forgive, so it is committed before
 * the row that made it necessary goes.
 */
export interface SharedFloors extends Floors {
  /** Whether a floor was read since `begin`. */
  isOpen: boolean
  /** Forgets what was prepared, and reads anew. */
  begin(): void
  /** Writes what was prepared; false if somebody else was faster: then begin again. */
  commit(): boolean
}

/** createSharedFloors reads and writes through `bucket`; the first floor's is number `homes`. */
export function createSharedFloors(
  region: Region,
  words: Int32Array,
  cells: Float64Array,
  bucket: Bucket,
  layout: Layout,
): SharedFloors {
  const { homes, stride } = region
  const lists = createLists()
  const fence = new Int32Array(new SharedArrayBuffer(4))
  let shardRead = -1
  let before: readonly FloorRow[] = []
  let entries: FloorEntry[] = []
  let floor: Floor | undefined
  /** Until then strangers start with everything used; see `rowsOf`. */
  let hardUntilUs = 0

  const isEmpty = () => bucket.live[0] === 0 && bucket.live[1] === 0

  function read(shard: number): void {
    if (shard === shardRead) return
    floors.isOpen = true
    shardRead = shard
    floor = undefined
    // Only then, or a row that had to go could be missed: it goes after its floor was raised.
    Atomics.store(fence, 0, 0)
    Atomics.load(fence, 0)
    bucket.read(homes + shard)
  }

  /** The floor of the shard that was read, as entries that can be worked on. */
  function opened(shard: number): Floor {
    read(shard)
    if (floor) return floor
    do before = readRows()
    while (!bucket.isUnchanged() && reread())
    entries = []
    hardUntilUs = 0
    for (const { tag, cells } of before) {
      if (tag === BLOCK_TAG) hardUntilUs = cells[0]
      else unpack(tag, cells)
    }
    floor = withHard(createFloor(lists.all[0], entries))
    return floor
  }

  function reread(): boolean {
    bucket.read(homes + shardRead)
    return true
  }

  function readRows(): FloorRow[] {
    const rows: FloorRow[] = []
    eachLive(bucket.live, (slot) => {
      const at = bucket.slotAt(slot)
      const from = at / 2 + 1
      rows.push({ tag: words[at + 1], cells: cells.slice(from, from + stride) })
    })
    return rows
  }

  function unpack(tag: number, row: Float64Array): void {
    for (const { column, rule } of layout.written(tag)) {
      const { at, cells } = layout.columns[column]
      const state = row.slice(at, at + cells)
      if (rule.algorithm.freshAtUs(state, 0, rule) > 0) entries.push({ column, rule, state })
    }
  }

  function withHard(plain: Floor): Floor {
    return {
      ...plain,
      only: undefined,
      raised: (nowUs) => plain.raised(nowUs) || hardUntilUs > nowUs,
      apply(column, width, rule, state, at, nowUs) {
        const applied = plain.apply(column, width, rule, state, at, nowUs)
        if (hardUntilUs <= nowUs) return applied
        useUp(rule, state, at, nowUs)
        return true
      },
    }
  }

  /** Uses up everything, and more if it would be fresh again before that. */
  function useUp(rule: Rule, state: Float64Array, at: number, nowUs: number): void {
    const { spend, freshAtUs } = rule.algorithm
    let freshUs = -1
    for (let cost = rule.capacity; ; cost = Math.min(2 * cost, MOST_UNITS)) {
      spend(state, at, rule, cost, nowUs)
      const laterUs = freshAtUs(state, at, rule)
      if (laterUs >= hardUntilUs || laterUs === freshUs) return
      freshUs = laterUs
    }
  }

  /**
   * A row for each entry. There is no room for more than 28, and the table may have no tag left;
   * for what is left over, strangers start with everything used until it would be fresh.
   */
  function rowsOf(): FloorRow[] {
    const rows: FloorRow[] = []
    let untilUs = hardUntilUs
    for (const { column, rule, state } of entries) {
      const tag = rows.length < MOST_ROWS ? tagOf(column, rule) : undefined
      if (tag === undefined) {
        untilUs = Math.max(untilUs, rule.algorithm.freshAtUs(state, 0, rule))
        continue
      }
      const cells = new Float64Array(stride)
      cells.set(state, layout.columns[column].at)
      rows.push({ tag, cells })
    }
    if (untilUs === 0) return rows
    const hard = new Float64Array(stride)
    hard[0] = untilUs
    return [...rows, { tag: BLOCK_TAG, cells: hard }]
  }

  function tagOf(column: number, rule: Rule): number | undefined {
    try {
      return layout.tagOf(new Map([[column, rule]]))
    } catch {
      return undefined
    }
  }

  /** Writes the rows into slots that hold none. */
  function write(rows: readonly FloorRow[]): boolean {
    const live = new Int32Array(2)
    let slot = 0
    for (const { tag, cells: row } of rows) {
      while (isLive(bucket.live, slot)) slot += 1
      words[bucket.slotAt(slot) + 1] = tag
      cells.set(row, bucket.slotAt(slot) / 2 + 1)
      setLive(live, slot, true)
      slot += 1
    }
    return bucket.commit(live[0], live[1])
  }

  // Plain fields only: an accessor would turn the object into a slow one.
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
      const rows = rowsOf()
      if (areSame(rows, before)) return true
      return bucket.change(() => write(rows))
    },
    clear() {},
  }
  return floors
}

function areSame(some: readonly FloorRow[], others: readonly FloorRow[]): boolean {
  return (
    some.length === others.length &&
    some.every(({ tag, cells }, i) => {
      const other = others[i]
      return tag === other.tag && cells.every((cell, j) => cell === other.cells[j])
    })
  )
}
