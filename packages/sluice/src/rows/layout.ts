import type { Rule } from '../core/rule.ts'
import type { RuleSet } from '../stores/store.ts'

/** Column is the range of a row's cells for one rule name and algorithm. */
export interface Column {
  readonly name: string
  readonly algorithm: string
  /** Whether the state is a list. It has an array of its own, and the row's one cell is its index. */
  readonly grows: boolean
  readonly cells: number
  readonly at: number
}

/** LaidRules is a rule set with the positions of its rules' cells. */
export interface LaidRules extends RuleSet {
  /** Column index of each rule, −1 for a rule without state. */
  readonly columns: Int32Array
  /** Offset of each rule's cells within a row. */
  readonly at: Int32Array
  /** Result of the last decision: how long each rule refuses, and how long it delays. */
  readonly waitUs: Float64Array
  readonly delayUs: Float64Array
  /** Offset of the penalty's cells, and its column. */
  penaltyAt: number
  penaltyColumn: number
  /**
   * The single rule if there is one, it is no list and neither delays nor holds, and there is no
   * penalty.
   */
  readonly only: Rule | undefined
  /** Copy of `at[0]`. */
  onlyAt: number
  /** Whether no rule keeps state. */
  readonly stateless: boolean
  /** The tag of a row that was only ever used with these rules. */
  tag: number
}

/** Written is a column of a row, and the rule its cells were last written for. */
export interface Written {
  readonly column: number
  readonly rule: Rule
}

/**
 * TagBook numbers the combinations of written columns that occur in a table. Tag 0 means that none
 * was written.
 */
export interface TagBook {
  written(tag: number): readonly Written[]
  /** Returns the tag of these columns, which are sorted. `text` identifies them. */
  tagOf(written: readonly Written[], text: string): number
}

/**
 * Layout maps the rules of a table to columns of its rows, and a row's tag to the columns that were
 * written and the rules that wrote them. A row whose tag has other limits is carried over first:
 * that is how limits change at run time while used units stay used.
 */
export interface Layout {
  columns: readonly Column[]
  /** Cells per row. */
  stride: number
  /** Prepares a list of rules. Calls `moved` if it had to add or widen columns. */
  use(rules: readonly Rule[], moved: (before: readonly Column[]) => void): LaidRules
  /** Returns the columns that a row with this tag has written. */
  written(tag: number): readonly Written[]
  /** Tells whether a row with this tag was written for exactly these rules. */
  fits(tag: number, set: LaidRules): boolean
  /** Returns the tag of such a row once `set` has written its columns. */
  tagAfter(tag: number, set: LaidRules): number
  /** Returns the tag of a row whose columns these rules have written. */
  tagOf(rules: ReadonlyMap<number, Rule>): number
  /** Returns a tag with all columns written. */
  fullTag(): number
}

/** columnsOf returns the names and algorithms of rules as a sorted text. */
export function columnsOf(rules: readonly Rule[]): string {
  return [...new Set(rules.map(columnName))].sort().join(', ')
}

/** Unambiguous, since an algorithm's name contains no parentheses. */
const columnName = (rule: Rule) => `"${rule.name}" (${rule.algorithm.name})`

/** Creates a tag book that assigns consecutive numbers. */
function createTagBook(): TagBook {
  const writtenByTag: (readonly Written[])[] = [[]]
  const tags = new Map([['', 0]])
  return {
    written: (tag) => writtenByTag[tag],
    tagOf(written, text) {
      const known = tags.get(text)
      if (known !== undefined) return known
      tags.set(text, writtenByTag.length)
      return writtenByTag.push(written) - 1
    },
  }
}

/**
 * createLayout starts without columns and adds them on demand. With `fixed` it has those columns
 * only, and throws `fixed.unfit(rule)` for a rule that needs more.
 */
export function createLayout(
  book: TagBook = createTagBook(),
  fixed?: { readonly columns: readonly Column[]; unfit(rule: Rule): Error },
): Layout {
  const sets = new Map<string, LaidRules>()

  function columnOf(rule: Rule): number {
    return layout.columns.findIndex(
      ({ name, algorithm }) => name === rule.name && algorithm === rule.algorithm.name,
    )
  }

  /** Adds or widens columns so that all rules have room; true if any changed. */
  function makeRoom(rules: readonly Rule[]): boolean {
    const before = layout.stride
    for (const rule of rules) {
      const { name: algorithm, grows } = rule.algorithm
      const cells = grows ? 1 : rule.algorithm.cells(rule)
      const known = columnOf(rule)
      if (fixed) {
        if (cells > (layout.columns[known]?.cells ?? 0)) throw fixed.unfit(rule)
      } else if (known >= 0) {
        layout.columns = layout.columns.map((column, i) =>
          i === known ? { ...column, cells: Math.max(column.cells, cells) } : column,
        )
      } else if (cells > 0) {
        layout.columns = [...layout.columns, { name: rule.name, algorithm, grows, cells, at: 0 }]
      }
    }
    layout.stride = 0
    layout.columns = layout.columns.map((column) => {
      const at = layout.stride
      layout.stride += column.cells
      return { ...column, at }
    })
    return layout.stride !== before
  }

  function place(set: LaidRules): void {
    set.rules.forEach((rule, i) => {
      set.columns[i] = columnOf(rule)
      set.at[i] = layout.columns[set.columns[i]]?.at ?? 0
    })
    set.onlyAt = set.at[0]
    if (set.penalty === undefined) return
    set.penaltyColumn = columnOf(set.penalty)
    set.penaltyAt = layout.columns[set.penaltyColumn].at
  }

  function tagOf(rules: ReadonlyMap<number, Rule>): number {
    const written = [...rules]
      .map(([column, rule]) => ({ column, rule }))
      .sort((a, b) => a.column - b.column)
    return book.tagOf(written, writtenText(written))
  }

  // Plain fields only: an accessor would switch the object to V8's slow dictionary mode.
  const layout: Layout = {
    columns: fixed?.columns ?? [],
    stride: strideOf(fixed?.columns ?? []),
    use(all, moved) {
      const text = all.map((rule) => `${columnName(rule)} ${rule.text}`).join(', ')
      const known = sets.get(text)
      if (known) return known
      const before = layout.columns
      const penalty = all.find(({ algorithm }) => algorithm.punish)
      const rules = all.filter((rule) => rule !== penalty)
      if (makeRoom(all)) {
        for (const set of sets.values()) place(set)
        moved(before)
      }
      const set: LaidRules = {
        // A new array: V8 reads the elements of frozen arrays more slowly.
        rules,
        penalty,
        penaltyAt: 0,
        penaltyColumn: -1,
        capacity: Math.min(...rules.map((rule) => rule.capacity)),
        delays: rules.some((rule) => rule.algorithm.delays),
        holds: rules.some((rule) => rule.algorithm.holds),
        generation: 0,
        held: new Float64Array(2 * rules.length),
        columns: new Int32Array(rules.length),
        at: new Int32Array(rules.length),
        waitUs: new Float64Array(rules.length),
        delayUs: new Float64Array(rules.length),
        only: penalty ? undefined : onlyOf(rules),
        stateless: all.every((rule) => rule.algorithm.cells(rule) === 0),
        onlyAt: 0,
        tag: 0,
      }
      place(set)
      set.tag = layout.tagAfter(0, set)
      sets.set(text, set)
      return set
    },
    written: book.written,
    tagOf,
    fits(tag, set) {
      const written = book.written(tag)
      for (let i = 0; i < set.rules.length; i += 1) {
        if (set.columns[i] < 0) continue
        const before = ruleIn(written, set.columns[i])
        if (before?.text !== set.rules[i].text) return false
      }
      return !set.penalty || ruleIn(written, set.penaltyColumn)?.text === set.penalty.text
    },
    tagAfter(tag, set) {
      const rules = new Map(book.written(tag).map(({ column, rule }) => [column, rule]))
      addColumns(rules, set)
      return tagOf(rules)
    },
    fullTag() {
      const rules = new Map<number, Rule>()
      for (const set of sets.values()) addColumns(rules, set)
      return tagOf(rules)
    },
  }
  return layout
}

/** Adds the columns that a set writes to a map. */
function addColumns(to: Map<number, Rule>, { rules, columns, penalty, penaltyColumn }: LaidRules) {
  rules.forEach((rule, i) => {
    if (columns[i] >= 0) to.set(columns[i], rule)
  })
  if (penalty) to.set(penaltyColumn, penalty)
}

function onlyOf([rule, ...others]: readonly Rule[]): Rule | undefined {
  if (rule === undefined || others.length > 0) return undefined
  const { grows, delays, holds } = rule.algorithm
  return grows || delays || holds ? undefined : rule
}

/** writtenText returns a text that identifies written columns. */
export function writtenText(written: readonly Written[]): string {
  return written.map(({ column, rule }) => `${column}: ${rule.text}`).join(', ')
}

/** strideOf returns how many cells a row of these columns has. */
export function strideOf(columns: readonly Column[]): number {
  const last = columns.at(-1)
  return last ? last.at + last.cells : 0
}

/** ruleIn returns the rule that wrote a column. */
export function ruleIn(written: readonly Written[], column: number): Rule | undefined {
  for (let i = 0; i < written.length; i += 1) {
    if (written[i].column === column) return written[i].rule
  }
  return undefined
}
