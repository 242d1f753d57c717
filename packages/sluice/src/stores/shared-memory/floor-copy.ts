import { createFloor, type Floor, type FloorEntry, isRaised } from '../../rows/floor.ts'
import type { Layout } from '../../rows/layout.ts'
import type { Lists } from '../../rows/lists.ts'
import { type FloorRow, isSame } from './floor-rows.ts'
import type { Overflow } from './overflow.ts'
import { BLOCK_TAG, SLOTS } from './region.ts'
import type { SharedTags } from './shared-tags.ts'

/**
 * Rows of a floor in its bucket. One more row marks the overflow, and as many slots take new
 * versions.
 */
const MOST_ROWS = SLOTS / 2 - 1

/** PackedFloor is a floor in the form in which it is written. */
export interface PackedFloor {
  /** All rows of the floor's own bucket. */
  readonly near: readonly FloorRow[]
  /** The rows of the overflow that change, and their contents when they were read. */
  readonly far: readonly { readonly row: FloorRow; readonly seen: FloorRow | undefined }[]
}

/** FloorCopy is a thread's private copy of one shard's floor. */
export interface FloorCopy {
  /** Opens the floor in the rows of a bucket as a mutable copy. */
  open(rows: readonly FloorRow[]): Floor
  /** Packs the changed floor into rows. */
  pack(): PackedFloor
}

/**
 * createFloorCopy creates a copy. At its first use it loads the floor's entries from the overflow,
 * if a row in its bucket marks that there are some.
 */
export function createFloorCopy(
  stride: number,
  overflow: Overflow,
  layout: Layout,
  book: SharedTags,
  lists: Lists,
): FloorCopy {
  /** The row that marks, in a floor's bucket, that the floor has entries in the overflow. */
  const more: FloorRow = { tag: BLOCK_TAG, cells: new Float64Array(stride) }
  let entries: FloorEntry[] = []
  /** The overflow by tag, once it was read; and whether this floor needs it. */
  const far = new Map<number, FloorRow>()
  let hasFar = false
  let isFarRead = false
  let lastUs = 0

  function open(rows: readonly FloorRow[]): Floor {
    entries = []
    far.clear()
    isFarRead = false
    hasFar = false
    for (const row of rows) {
      if (row.tag === BLOCK_TAG) hasFar = true
      else unpack(row, (entry) => entries.push(entry))
    }
    return withFar(createFloor(lists.all[0], entries))
  }

  function unpack({ tag, cells: row }: FloorRow, visit: (entry: FloorEntry) => void): void {
    for (const { column, rule } of layout.written(tag)) {
      const { at, cells } = layout.columns[column]
      const state = row.slice(at, at + cells)
      if (rule.algorithm.freshAtUs(state, 0, rule) > 0) visit({ column, rule, state })
    }
  }

  function withFar(plain: Floor): Floor {
    return {
      only: undefined,
      raised(nowUs) {
        addFar(nowUs)
        return plain.raised(nowUs)
      },
      raise(column, rule, state, at, nowUs) {
        addFar(nowUs)
        plain.raise(column, rule, state, at, nowUs)
      },
      apply(column, width, rule, state, at, nowUs) {
        addFar(nowUs)
        return plain.apply(column, width, rule, state, at, nowUs)
      },
      clear: plain.clear,
    }
  }

  function addFar(nowUs: number): void {
    lastUs = nowUs
    if (!hasFar || isFarRead) return
    isFarRead = true
    const near = new Map(entries.map((entry) => [textOf(entry), entry]))
    for (const row of overflow.read()) {
      far.set(row.tag, row)
      unpack(row, (entry) => {
        if (!isRaised(entry, nowUs)) return
        const own = near.get(textOf(entry))
        if (own) merge(own, entry, nowUs)
        else entries.push(entry)
      })
    }
  }

  function merge(own: FloorEntry, { state }: FloorEntry, nowUs: number): void {
    if (!isRaised(own, nowUs)) own.state.fill(0)
    own.rule.algorithm.merge(own.state, 0, state, 0, own.rule, nowUs)
  }

  function pack(): PackedFloor {
    let { near, rest } = rowsOf()
    if (rest.length > 0 && !isFarRead) {
      hasFar = true
      addFar(lastUs)
      ;({ near, rest } = rowsOf())
    }
    const changes = rest.map((row) => ({ row, seen: far.get(row.tag) }))
    return {
      near: rest.length > 0 ? [...near, more] : near,
      far: changes.filter(({ row, seen }) => !isSame(row, seen)),
    }
  }

  /** Packs all entries into rows: those that fit into the bucket, and the rest. */
  function rowsOf(): { near: FloorRow[]; rest: FloorRow[] } {
    const near = new Map<number, FloorRow>()
    const rest = new Map<number, FloorRow>()
    for (const { column, rule, state } of entries) {
      // Use an existing tag, so that floors use up no tags.
      const tag = book.tagWith(column, rule)
      let row = near.get(tag) ?? rest.get(tag)
      if (!row) {
        const isNear = near.size < MOST_ROWS
        // Keep the columns that other shards have in the same row of the overflow.
        const kept = isNear ? undefined : far.get(tag)?.cells.slice()
        row = { tag, cells: kept ?? new Float64Array(stride) }
        if (isNear) near.set(tag, row)
        else rest.set(tag, row)
      }
      row.cells.set(state, layout.columns[column].at)
    }
    return { near: [...near.values()], rest: [...rest.values()] }
  }

  return { open, pack }
}

/** Returns a text that identifies the column and rule of an entry. */
const textOf = ({ column, rule }: FloorEntry) => `${column} ${rule.text}`
