import type { Rule } from '../core/rule.ts'
import { columnsOf } from '../rows/layout.ts'
import { mismatch } from '../rows/store-errors.ts'

/** OpenTable gives the table of the limiter called `name`, ready for these lists of rules. */
type OpenTable<Opened> = (
  name: string,
  ruleLists: readonly (readonly Rule[])[],
  mayChange?: boolean,
) => Opened

/**
 * openTables makes the `open` of a store: a table for each limiter name, shared by limiters with
 * the same rule names and algorithms.
 */
export function openTables<Opened extends { use(rules: readonly Rule[]): unknown }>(
  makeTable: (...given: Required<Parameters<OpenTable<Opened>>>) => Opened,
): OpenTable<Opened> {
  const tables = new Map<string, { columns: string; mayChange: boolean; table: Opened }>()
  return (name, ruleLists, mayChange = false) => {
    const columns = columnsOf(ruleLists.flat())
    const opened = tables.get(name)
    // The rules of a policy may change at any time, so it may as well come with others.
    if (opened && opened.columns !== columns && !(mayChange && opened.mayChange)) {
      throw mismatch(name, opened.columns, columns)
    }
    const table = opened?.table ?? makeTable(name, ruleLists, mayChange)
    // Rules that it cannot hold throw here, before the name is taken.
    for (const rules of ruleLists) table.use(rules)
    if (!opened) tables.set(name, { columns, mayChange, table })
    return table
  }
}
