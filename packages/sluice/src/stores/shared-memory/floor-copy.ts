import { createFloor, type Floor, type FloorEntry, isRaised } from '../../rows/floor.ts'
import type { Layout } from '../../rows/layout.ts'
import type { Lists } from '../../rows/lists.ts'
import { type FloorRow, isSame } from './floor-rows.ts'
import type { Overflow } from './overflow.ts'
import { BLOCK_TAG, SLOTS } from './region.ts'
import type { SharedTags } from './shared-tags.ts'

/** Beside these there is one that tells of the overflow; new ones are written beside all of them. */
const MOST_ROWS = SLOTS / 2 - 1

/** PackedFloor is a floor as it is to be written. */
export interface PackedFloor {
  /** All rows of its bucket. */
  readonly near: readonly FloorRow[]
  /** The rows of the overflow that change, and what they were read as. */
  readonly far: readonly { readonly row: FloorRow; readonly seen: FloorRow | undefined }[]
}

/** FloorCopy is a thread's private copy of one shard's floor. */
export interface FloorCopy {
  /** The floor that is in the rows of a bucket, to be worked on. */
  open(rows: readonly FloorRow[]): Floor
  /** What it has become. */
  pack(): PackedFloor
}

/**
 * createFloorCopy completes a floor by the overflow when it is first asked at some time, if a row in
 * its bucket says so.
 */
export function createFloorCopy(
  stride: number,
  overflow: Overflow,
  layout: Layout,
  book: SharedTags,
  lists: Lists,
): FloorCopy {
  /** In the bucket of a floor that has rows in the overflow. */
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

  /** All entries in rows: those that the bucket has room for, and the rest. */
  function rowsOf(): { near: FloorRow[]; rest: FloorRow[] } {
    const near = new Map<number, FloorRow>()
    const rest = new Map<number, FloorRow>()
    for (const { column, rule, state } of entries) {
      // Of a tag that is there: a floor uses up none.
      const tag = book.tagWith(column, rule)
      let row = near.get(tag) ?? rest.get(tag)
      if (!row) {
        const isNear = near.size < MOST_ROWS
        // What other shards keep in the same row of the overflow stays in it.
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

/** The same for entries of the same column and rule. */
const textOf = ({ column, rule }: FloorEntry) => `${column} ${rule.text}`
