import { SluiceError } from '../errors.ts'
import { columnsOf } from './layout.ts'
import type { Store, Table } from './store.ts'

/**
 * openTables makes the `open` of a store: a table for each limiter name, shared by limiters with
 * the same rule names and algorithms.
 */
export function openTables(makeTable: () => Table): Store['open'] {
  const tables = new Map<string, { columns: string; table: Table }>()
  return (name, ruleLists) => {
    const columns = columnsOf(ruleLists.flat())
    const opened = tables.get(name)
    if (opened && opened.columns !== columns) {
      throw new SluiceError(
        'SLUICE_STORE_MISMATCH',
        `a limiter called "${name}" already uses this store with the rules ${opened.columns}, ` +
          `not ${columns}. Give this limiter another \`name\`.`,
      )
    }
    if (opened) return opened.table
    const table = makeTable()
    // Rules that it cannot hold throw here, before the name is taken.
    for (const rules of ruleLists) table.use(rules)
    tables.set(name, { columns, table })
    return table
  }
}
