import type { Algorithm } from '../../core/algorithm.ts'
import { SluiceError, shown } from '../../core/errors.ts'
import { readRule } from '../../core/read-rule.ts'
import type { Rule } from '../../core/rule.ts'
import { type TagBook, type Written, writtenText } from '../../rows/layout.ts'
import { type Region, TAG_CELLS, TAG_HEAD_WORDS } from './region.ts'

/** States of an entry: 0 is free, WRITING while a thread writes it, then final. */
const WRITING = 1
const WRITTEN = 2

/** The longest text of a rule. */
const TEXT_BYTES = 8 * TAG_CELLS

/** SharedTags is a tag book that can find a tag by one column. */
export interface SharedTags extends TagBook {
  /**
   * Returns a tag in which this rule has written this column, perhaps among other columns: the tag
   * from which the rule was read, else the first one that this thread met.
   */
  tagWith(column: number, rule: Rule): number
}

/**
 * createSharedTags creates a tag book in shared memory, so that each thread knows which rules wrote
 * the rows of other threads. An entry has the text of each column's rule, or '' for an unwritten
 * column.
 */
export function createSharedTags(
  region: Region,
  words: Int32Array,
  cells: Float64Array,
  algorithms: readonly Algorithm[],
): SharedTags {
  const { columns, tags: most, tagsAt, tagWords } = region
  const known: (readonly Written[] | undefined)[] = [[]]
  const tags = new Map([['', 0]])
  /** The first tag met for a column and rule, by their text; and the results of `tagWith`. */
  const tagsWith = new Map<string, number>()
  const tagsOfRules = new WeakMap<Rule, number>()
  const entryAt = (tag: number) => tagsAt + tag * tagWords
  const bytesAt = (tag: number, column: number) =>
    new Uint8Array(
      cells.buffer,
      cells.byteOffset + 8 * ((entryAt(tag) + TAG_HEAD_WORDS) / 2 + column * TAG_CELLS),
      TEXT_BYTES,
    )

  function textAt(tag: number, column: number): string {
    const bytes = bytesAt(tag, column)
    const end = bytes.indexOf(0)
    return String.fromCharCode(...bytes.subarray(0, end < 0 ? TEXT_BYTES : end))
  }

  function load(tag: number): readonly Written[] {
    const written: Written[] = []
    for (let column = 0; column < columns.length; column += 1) {
      const text = textAt(tag, column)
      if (text === '') continue
      const algorithm = algorithms[column]
      const rule = readRule(`${text} ${algorithm.name}`, [algorithm], columns[column].name)
      written.push({ column, rule })
      tagsOfRules.set(rule, tag)
      const one = writtenText([{ column, rule }])
      if (!tagsWith.has(one)) tagsWith.set(one, tag)
    }
    known[tag] = written
    tags.set(writtenText(written), tag)
    return written
  }

  function write(tag: number, written: readonly Written[]): void {
    for (const { column, rule } of written) {
      const bytes = bytesAt(tag, column)
      const text = shortText(rule)
      for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i)
    }
    Atomics.store(words, entryAt(tag), WRITTEN)
    load(tag)
  }

  return {
    written: (tag) => known[tag] ?? load(tag),
    tagWith(column, rule) {
      const known = tagsOfRules.get(rule)
      if (known !== undefined) return known
      // This thread has met the rule in a row or a rule set, and with it a tag.
      const tag = tagsWith.get(writtenText([{ column, rule }]))!
      tagsOfRules.set(rule, tag)
      return tag
    },
    tagOf(written, text) {
      for (const { rule } of written) checkText(rule)
      // Two threads may add the same combination at once. Both tags then mean the same.
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
        `the table of this limiter in shared memory has seen ${most} different combinations of ` +
          'limits, its maximum. Use fewer different overrides, or a larger maxKeys.',
      )
    },
  }
}

/** Returns a rule's text without the name of its algorithm, which the column has. */
function shortText({ text, algorithm }: Rule): string {
  const end = ` ${algorithm.name}`
  return text.endsWith(end) ? text.slice(0, -end.length) : text
}

/** Throws unless a rule's text fits into an entry. */
function checkText(rule: Rule): void {
  const text = shortText(rule)
  if (text.length <= TEXT_BYTES && /^[\x20-\x7e]*$/.test(text)) return
  throw new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    `rule "${rule.name}": shared memory holds rules whose text is at most ${TEXT_BYTES} printable ASCII ` +
      `characters, and this one is ${shown(text)}. Give its algorithm shorter parameters.`,
  )
}
