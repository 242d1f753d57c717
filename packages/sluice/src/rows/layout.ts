import type { Rule } from '../core/rule.ts'
import type { RuleSet } from '../stores/store.ts'

/** Column is where a row keeps the state of one rule name and algorithm. */
export interface Column {
  readonly name: string
  readonly algorithm: string
  /** A list lives in an array of its own; the row's one cell says which. */
  readonly grows: boolean
  readonly cells: number
  readonly at: number
}

/** LaidRules is a rule set that knows where its rules' cells are. */
export interface LaidRules extends RuleSet {
  /** Column index of each rule, −1 for a rule without state. */
  readonly columns: Int32Array
  /** Offset of each rule's cells within a row. */
  readonly at: Int32Array
  /** What the last decision found: how long each rule refuses, and how long it delays. */
  readonly waitUs: Float64Array
  readonly delayUs: Float64Array
  /** Where the cells of the penalty are, and its column. */
  penaltyAt: number
  penaltyColumn: number
  /** The one rule, where there is just one, whose state is no list and which neither delays nor holds, without a penalty. */
  readonly only: Rule | undefined
  /** The same as `at[0]`. */
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
 * TagBook numbers the combinations of written columns that rows of a table have. Tag 0: none was
 * written.
 */
export interface TagBook {
  written(tag: number): readonly Written[]
  /** The tag of these, which are sorted by column; `text` is the same for the same ones. */
  tagOf(written: readonly Written[], text: string): number
}

/**
 * Layout knows, for one table, the columns of a row and what a row's tag means: which columns were
 * ever written, and for which rules. A row that meets rules with other figures is carried over
 * first, which is how limits change at run time and used units stay used.
 */
export interface Layout {
  columns: readonly Column[]
  /** Cells per row. */
  stride: number
  /** Makes rules ready. `moved` is called when columns had to be added or widened. */
  use(rules: readonly Rule[], moved: (before: readonly Column[]) => void): LaidRules
  /** What was written in a row with this tag. */
  written(tag: number): readonly Written[]
  /** Whether a row with this tag is written for these very rules. */
  fits(tag: number, set: LaidRules): boolean
  /** The tag of such a row once its columns are written for `set`. */
  tagAfter(tag: number, set: LaidRules): number
  /** The tag of a row whose columns are written for these rules. */
  tagOf(rules: ReadonlyMap<number, Rule>): number
  /** The tag of a row whose columns are all written, for some rule each. */
  fullTag(): number
}

/** columnsOf are the names and algorithms of rules, comparable as a text. */
export function columnsOf(rules: readonly Rule[]): string {
  return [...new Set(rules.map(columnName))].sort().join(', ')
}

/** Not ambiguous: an algorithm's name has no parentheses. */
const columnName = (rule: Rule) => `"${rule.name}" (${rule.algorithm.name})`

/** createTagBook numbers as they come. */
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
 * createLayout starts without columns; with `fixed`, it has those and can have no others, and
 * `fixed.unfit` makes the error for a rule that needs more.
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

  /** Adds or widens columns so that all rules have room; true when there was none. */
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

  // Plain fields only: an accessor would turn the object into a slow one.
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
        // No frozen list: its elements are slower to read.
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

/** Adds the columns that a set writes. */
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

/** writtenText is the same for the same written columns. */
export function writtenText(written: readonly Written[]): string {
  return written.map(({ column, rule }) => `${column}: ${rule.text}`).join(', ')
}

/** strideOf is how many cells a row of these columns has. */
export function strideOf(columns: readonly Column[]): number {
  const last = columns.at(-1)
  return last ? last.at + last.cells : 0
}

/** ruleIn is the rule that a column was written for. */
export function ruleIn(written: readonly Written[], column: number): Rule | undefined {
  for (let i = 0; i < written.length; i += 1) {
    if (written[i].column === column) return written[i].rule
  }
  return undefined
}
