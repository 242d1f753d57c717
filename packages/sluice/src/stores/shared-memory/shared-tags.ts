import type { Algorithm } from '../../core/algorithm.ts'
import { SluiceError } from '../../core/errors.ts'
import { defineRule, type Rule } from '../../core/rule.ts'
import { type TagBook, textOf, type Written } from '../../rows/layout.ts'
import { type Region, TAG_CELLS, TAG_HEAD_WORDS } from './region.ts'

/** States of an entry: 0 is none, then somebody is writing it, then it is there for good. */
const WRITING = 1
const WRITTEN = 2

/**
 * createSharedTags is a tag book that all threads share, so that each knows for which figures a row
 * was written by another. An entry has the limit, per, capacity and alignment of each column's rule;
 * a limit of 0 is a column that is not written.
 */
export function createSharedTags(
  region: Region,
  words: Int32Array,
  cells: Float64Array,
  algorithms: readonly Algorithm[],
): TagBook {
  const { columns, tags: most, tagsAt, tagWords } = region
  const known: (readonly Written[] | undefined)[] = [[]]
  const tags = new Map([['', 0]])
  const entryAt = (tag: number) => tagsAt + tag * tagWords
  const cellsAt = (tag: number, column: number) =>
    (entryAt(tag) + TAG_HEAD_WORDS) / 2 + column * TAG_CELLS

  function load(tag: number): readonly Written[] {
    const written: Written[] = []
    for (let column = 0; column < columns.length; column += 1) {
      const at = cellsAt(tag, column)
      const [limit, perUs, capacity, aligned] = cells.subarray(at, at + TAG_CELLS)
      if (limit === 0) continue
      const figures = { limit, per: perUs / 1_000, name: columns[column].name }
      const extra = { capacity, aligned: aligned === 1 }
      written.push({ column, rule: defineRule(algorithms[column], figures, extra) })
    }
    known[tag] = written
    tags.set(textOf(written), tag)
    return written
  }

  function write(tag: number, written: readonly Written[]): void {
    for (const { column, rule } of written) cells.set(figuresOf(rule), cellsAt(tag, column))
    Atomics.store(words, entryAt(tag), WRITTEN)
    load(tag)
  }

  return {
    written: (tag) => known[tag] ?? load(tag),
    tagOf(written, text) {
      // Two threads may enter the same at the same time: then both tags mean the same.
      for (let tag = 1; tag <= most && !tags.has(text); tag += 1) {
        const state = Atomics.load(words, entryAt(tag))
        if (state === WRITTEN && known[tag] === undefined) load(tag)
        if (state !== 0) continue
        if (Atomics.compareExchange(words, entryAt(tag), 0, WRITING) === 0) write(tag, written)
      }
      const tag = tags.get(text)
      if (tag !== undefined) return tag
      throw new SluiceError(
        'SLUICE_STORE_FULL',
        `the table of this limiter in shared memory has met ${most} different combinations of ` +
          'limits, and can tell no more apart. Use fewer different overrides, or a larger maxKeys.',
      )
    },
  }
}

function figuresOf({ limit, perUs, capacity, aligned }: Rule): number[] {
  return [limit, perUs, capacity, aligned ? 1 : 0]
}
