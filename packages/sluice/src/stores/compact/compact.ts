import { type Clock, steadyClock, systemClock } from '../../core/clock.ts'
import { checkOptions, checkWhole } from '../../core/options.ts'
import { checkProcesses } from '../../core/processes.ts'
import { createTable } from '../../rows/table.ts'
import { openTables } from '../opened.ts'
import type { Store, Table } from '../store.ts'
import { createCompactRows } from './compact-rows.ts'

/** CompactStoreOptions are the options of `compactStore`. */
export interface CompactStoreOptions {
  /**
   * Maximum number of keys per limiter. Default 1,000,000; at most 1,000,000,000. A full store
   * evicts a key that is nearly full again, and unknown keys start with the units that evicted keys
   * had used.
   */
  readonly maxKeys?: number
  /** Default: the system clock, made monotonic. Tests pass a `manualClock()`. */
  readonly clock?: Clock
  /**
   * Says that each process is to have limits of its own, and so switches off the warning
   * `SLUICE_PER_PROCESS` of a process that is one of several. Default false.
   */
  readonly perProcess?: boolean
}

/**
 * compactStore keeps millions of keys in this process: 22 to 32 bytes per key of any length with a
 * one-number rule, and no pause for the garbage collector or for growing. It keeps a keyed 60-bit
 * fingerprint in place of each key. So it cannot list keys, and among n keys two share a state with
 * a probability of about n² / 2^61. It supports every rule except the sliding window log.
 */
export function compactStore(options: CompactStoreOptions = {}): Store {
  checkOptions('compactStore', options, ['maxKeys', 'clock', 'perProcess'])
  const { maxKeys = 1_000_000, clock = systemClock, perProcess } = options
  checkWhole('compactStore: maxKeys', maxKeys, 1, 1_000_000_000)
  checkProcesses('compactStore', perProcess)
  const nowUs = steadyClock(clock)
  const makeTable = () => createTable((care) => createCompactRows(maxKeys, care), nowUs) as Table
  return { kind: 'sync', clock, open: openTables(makeTable) }
}
