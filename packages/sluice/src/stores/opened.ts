import type { Rule } from '../core/rule.ts'
import { columnsOf } from '../rows/layout.ts'
import { mismatch } from '../rows/store-errors.ts'

/** Opens the table of the limiter called `name` with these rule lists. */
type OpenTable<Opened> = (
  name: string,
  ruleLists: readonly (readonly Rule[])[],
  mayChange?: boolean,
) => Opened

/**
 * openTables creates the `open` function of a store. It keeps one table per limiter name, shared by
 * limiters with the same rule names and algorithms.
 */
export function openTables<Opened extends { use(rules: readonly Rule[]): unknown }>(
  makeTable: (...given: Required<Parameters<OpenTable<Opened>>>) => Opened,
): OpenTable<Opened> {
  const tables = new Map<string, { columns: string; mayChange: boolean; table: Opened }>()
  return (name, ruleLists, mayChange = false) => {
    const columns = columnsOf(ruleLists.flat())
    const opened = tables.get(name)
    // The rules of a policy may change at any time, so two policies may differ from the start.
    if (opened && opened.columns !== columns && !(mayChange && opened.mayChange)) {
      throw mismatch(name, opened.columns, columns)
    }
    const table = opened?.table ?? makeTable(name, ruleLists, mayChange)
    // Unsupported rules throw here, before the name is taken.
    for (const rules of ruleLists) table.use(rules)
    if (!opened) tables.set(name, { columns, mayChange, table })
    return table
  }
}
