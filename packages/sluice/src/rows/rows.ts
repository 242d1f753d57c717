import type { Column } from './layout.ts'
import type { Lists } from './lists.ts'
import type { Row } from './row.ts'

/**
 * Rows is the row storage of a table: one row per key, each with a few cells and a tag that tells
 * which rules wrote the cells. It does not depend on algorithms. Its fields are a cursor: until the
 * next call they describe the row that was found, inserted or visited last.
 */
export interface Rows extends Row {
  tag: number
  /** The shard of the key that was looked up last, which selects its floor. */
  shard: number

  /** The number of rows, including fresh ones not yet removed. */
  size: number
  readonly maxRows: number
  readonly shards: number
  /** Whether rows can hold list indexes; and whether the keys themselves are kept. */
  readonly holdsLists: boolean
  readonly holdsKeys: boolean

  /**
   * Hashes the key, ready for `find`; true if the cursor is on its row already. Separate from
   * `find` so that the clock is read in between: reading it waits for pending loads, so the slow
   * load of the row should start afterwards.
   */
  aim(key: string): boolean
  /** Moves the cursor to the row of the key given to `aim`; false if it has none. */
  find(key: string): boolean
  /**
   * Adds a row for the key with these cells and this tag. Call right after `find` returned false.
   * `floored` tells whether the cells come from the floor.
   */
  insert(key: string, start: Float64Array, tag: number, nowUs: number, floored: boolean): void
  /** Changes the tag of the row at the cursor. */
  retag(tag: number): void
  /** Removes the row at the cursor. */
  remove(): void
  /** Visits every row with the cursor on it. `visit` must not change rows. */
  each(visit: () => void): void
  clear(): void
  /** Copies every row into the columns of another layout. */
  move(before: readonly Column[], after: readonly Column[]): void

  /** Returns the id of a key: the key itself if keys are kept, else its fingerprint. */
  idOf(key: string): string
  /** Returns the id of the row at the cursor. */
  id(): string
  hasId(id: string): boolean
}

/** RowCare is the set of callbacks through which row storage asks its table about evictions. */
export interface RowCare {
  readonly lists: Lists
  /** Returns when the row is fresh. Always finite. */
  freshAtUs(cells: Float64Array, base: number, tag: number): number
  /** Called before a row in use is evicted, so that its units count towards the floor. */
  evicted(cells: Float64Array, base: number, tag: number, shard: number, nowUs: number): void
  /** Called before a row is removed, evicted or fresh: frees its lists. */
  dropped(cells: Float64Array, base: number): void
}

/** moveCells copies one row's cells from the columns of one layout to those of another. */
export function moveCells(
  from: Float64Array,
  fromBase: number,
  before: readonly Column[],
  to: Float64Array,
  toBase: number,
  after: readonly Column[],
): void {
  for (let column = 0; column < before.length; column += 1) {
    const { at, cells } = before[column]
    const target = toBase + after[column].at
    for (let i = 0; i < cells; i += 1) to[target + i] = from[fromBase + at + i]
  }
}
