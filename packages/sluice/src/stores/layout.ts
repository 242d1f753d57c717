import { newFigures } from '../decision.ts'
import { SluiceError } from '../errors.ts'
import { figuresOf, type Rule } from '../rule.ts'
import type { RuleSet } from './store.ts'

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
  /** Whether no rule keeps state. */
  readonly stateless: boolean
  /** The tag of a row that was only ever used with these rules. */
  tag: number
}

/**
 * Layout knows, for one table, the columns of a row and what a row's tag means: for each column
 * the rule its cells were last written for. A row that meets rules with other figures is carried
 * over first, which is how limits change at run time and used units stay used. Tag 0: no column
 * was ever written.
 */
export interface Layout {
  readonly columns: readonly Column[]
  /** Cells per row. */
  readonly stride: number
  /** Makes rules ready. `moved` is called when columns had to be added or widened. */
  use(rules: readonly Rule[], moved: (before: readonly Column[]) => void): LaidRules
  /** The rule that a column of a row with this tag was written for. */
  writtenFor(tag: number, column: number): Rule | undefined
  /** Whether a row with this tag is written for these very rules. */
  fits(tag: number, set: LaidRules): boolean
  /** The tag of such a row once its columns are written for `set`. */
  tagAfter(tag: number, set: LaidRules): number
}

/** columnsOf are the names and algorithms of rules, comparable as a text. */
export function columnsOf(rules: readonly Rule[]): string {
  return [...new Set(rules.map(columnName))].sort().join(' ')
}

const columnName = (rule: Rule) => JSON.stringify([rule.name, rule.algorithm.name])

export function createLayout(): Layout {
  let columns: readonly Column[] = []
  let stride = 0
  const written: (Rule | undefined)[][] = [[]]
  const tags = new Map([['', 0]])
  const sets = new Map<string, LaidRules>()

  /** Adds or widens columns so that all rules have room; true when there was none. */
  function makeRoom(rules: readonly Rule[]): boolean {
    const cells = new Map(columns.map((c) => [JSON.stringify([c.name, c.algorithm]), c.cells]))
    const before = stride
    for (const rule of rules) {
      const name = columnName(rule)
      const need = rule.algorithm.grows ? 1 : rule.algorithm.cells(rule)
      if (need > 0) cells.set(name, Math.max(need, cells.get(name) ?? 0))
    }
    stride = 0
    const grows = new Map(rules.map((rule) => [columnName(rule), rule.algorithm.grows]))
    columns = [...cells].map(([text, count], i) => {
      const [name, algorithm] = JSON.parse(text)
      const at = stride
      stride += count
      return { name, algorithm, grows: columns[i]?.grows ?? grows.get(text)!, cells: count, at }
    })
    return stride !== before
  }

  function place(set: LaidRules): void {
    set.rules.forEach((rule, i) => {
      set.columns[i] = columns.findIndex(
        (c) => c.name === rule.name && c.algorithm === rule.algorithm.name,
      )
      set.at[i] = columns[set.columns[i]]?.at ?? 0
    })
  }

  const layout: Layout = {
    get columns() {
      return columns
    },
    get stride() {
      return stride
    },
    use(rules, moved) {
      checkNames(rules)
      const text = rules.map((rule) => columnName(rule) + figuresOf(rule)).join(' ')
      const known = sets.get(text)
      if (known) return known
      const before = columns
      if (makeRoom(rules)) {
        for (const set of sets.values()) place(set)
        moved(before)
      }
      const set: LaidRules = {
        rules,
        capacity: Math.min(...rules.map((rule) => rule.capacity)),
        delays: rules.some((rule) => rule.algorithm.delays),
        figures: newFigures(rules.length),
        columns: new Int32Array(rules.length),
        at: new Int32Array(rules.length),
        stateless: rules.every((rule) => rule.algorithm.cells(rule) === 0),
        tag: 0,
      }
      place(set)
      set.tag = layout.tagAfter(0, set)
      sets.set(text, set)
      return set
    },
    writtenFor: (tag, column) => written[tag][column],
    fits(tag, set) {
      const row = written[tag]
      for (let i = 0; i < set.rules.length; i += 1) {
        if (set.columns[i] < 0) continue
        const rule = row[set.columns[i]]
        if (rule === undefined || !sameFigures(rule, set.rules[i])) return false
      }
      return true
    },
    tagAfter(tag, set) {
      const row = [...written[tag]]
      set.rules.forEach((rule, i) => {
        if (set.columns[i] >= 0) row[set.columns[i]] = rule
      })
      const text = Array.from(row, (rule) => (rule ? figuresOf(rule) : '')).join(' ')
      const known = tags.get(text)
      if (known !== undefined) return known
      tags.set(text, written.length)
      return written.push(row) - 1
    },
  }
  return layout
}

function sameFigures(a: Rule, b: Rule): boolean {
  return (
    a === b ||
    (a.limit === b.limit &&
      a.perUs === b.perUs &&
      a.capacity === b.capacity &&
      a.aligned === b.aligned)
  )
}

function checkNames(rules: readonly Rule[]): void {
  const seen = new Set<string>()
  for (const { name } of rules) {
    if (seen.has(name)) {
      throw new SluiceError(
        'SLUICE_RULE_DUPLICATE',
        `two rules of one limiter are called "${name}". Give each its own \`name\`.`,
      )
    }
    seen.add(name)
  }
}
