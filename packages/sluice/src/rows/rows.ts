import type { Column } from './layout.ts'
import type { Lists } from './lists.ts'
import type { Row } from './row.ts'

/**
 * Rows is where a table keeps its rows: one per key, each a few cells and a tag (which rules the
 * cells were written for). It knows nothing of algorithms. Its fields are a cursor: they describe
 * the row that was found, inserted or visited last, until the next call.
 */
export interface Rows extends Row {
  tag: number
  /** The shard of the key that was looked for last; its floor holds for that key. */
  shard: number

  /** How many rows there are, those included that have become fresh. */
  size: number
  readonly maxRows: number
  readonly shards: number
  /** Whether rows can hold an index into lists, and the keys themselves are kept. */
  readonly holdsLists: boolean
  readonly holdsKeys: boolean

  /**
   * Gets ready to find the key; true when the cursor is on its row already. A step of its own, for
   * the clock to be read after it: to read a clock the processor first ends all that it has begun,
   * so what is slow to come, the row, is better asked for afterwards.
   */
  aim(key: string): boolean
  /** Moves the cursor to the row of the key that was aimed at; false when it has none. */
  find(key: string): boolean
  /**
   * Right after a `find` that failed: gives the key a row with these cells and this tag. `floored`
   * tells whether they come from the floor.
   */
  insert(key: string, start: Float64Array, tag: number, nowUs: number, floored: boolean): void
  /** Gives the row at the cursor another tag. */
  retag(tag: number): void
  /** Removes the row at the cursor. */
  remove(): void
  /** Visits every row with the cursor on it. `visit` must not change rows. */
  each(visit: () => void): void
  clear(): void
  /** Copies every row into the columns of another layout. */
  move(before: readonly Column[], after: readonly Column[]): void

  /** What stands for a key outside the rows: the key itself, where keys are kept. */
  idOf(key: string): string
  /** The id of the row at the cursor. */
  id(): string
  hasId(id: string): boolean
}

/** RowCare is what rows ask of their table when they have to make way for a new row. */
export interface RowCare {
  readonly lists: Lists
  /** When the row is fresh; a number, and never Infinity. */
  freshAtUs(cells: Float64Array, base: number, tag: number): number
  /** The row has to go, though it is in use: its units must not be forgiven. */
  evicted(cells: Float64Array, base: number, tag: number, shard: number, nowUs: number): void
  /** The row goes, evicted or fresh: gives back what belongs to it. */
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
