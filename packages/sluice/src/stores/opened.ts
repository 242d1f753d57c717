import { columnsOf } from '../rows/layout.ts'
import { mismatch } from '../rows/store-errors.ts'
import type { Store, Table } from './store.ts'

/**
 * openTables makes the `open` of a store: a table for each limiter name, shared by limiters with
 * the same rule names and algorithms.
 */
export function openTables(
  makeTable: (...given: Required<Parameters<Store['open']>>) => Table,
): Store['open'] {
  const tables = new Map<string, { columns: string; mayChange: boolean; table: Table }>()
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
