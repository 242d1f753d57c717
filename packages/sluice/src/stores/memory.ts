import { type Clock, steadyClock, systemClock } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { checkOptions, checkWhole } from '../options.ts'
import type { Rule } from '../rule.ts'
import { columnsOf } from './layout.ts'
import { createMemoryTable } from './memory-table.ts'
import type { Store, Table } from './store.ts'

export interface MemoryStoreOptions {
  /**
   * Keys kept at most, for each limiter. Default 1,000,000; at most 16,000,000 (what a `Map`
   * holds). When full, the state nearest to fresh goes first, and nobody is forgiven anything.
   */
  readonly maxKeys?: number
  /** Default: the system's, monotonic. Tests pass a `manualClock()`. */
  readonly clock?: Clock
}

/**
 * memoryStore keeps exact keys in this process, listable, for all limiters it is given to. It
 * sets no timers: a state that has become fresh counts as absent, and its place is reused.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptions('memoryStore', options, ['maxKeys', 'clock'])
  const { maxKeys = 1_000_000, clock = systemClock } = options
  checkWhole('memoryStore: maxKeys', maxKeys, 1, 16_000_000)
  const nowUs = steadyClock(clock)
  const tables = new Map<string, { columns: string; table: Table }>()
  return {
    clock,
    open(name, rules) {
      const columns = columnsOf(rules)
      const opened = tables.get(name)
      if (opened && opened.columns !== columns) throw mismatch(name, opened.columns, rules)
      if (opened) return opened.table
      const table = createMemoryTable(maxKeys, nowUs) as Table
      tables.set(name, { columns, table })
      return table
    },
  }
}

function mismatch(name: string, columns: string, rules: readonly Rule[]): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_MISMATCH',
    `a limiter called "${name}" already uses this store with the rules ${columns}, ` +
      `not ${columnsOf(rules)}. Give this limiter another \`name\`.`,
  )
}
