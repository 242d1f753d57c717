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
   * Keys kept at most, for each limiter. Default 1,000,000; at most 1,000,000,000. When full, the
   * state nearest to fresh goes first, and nobody is forgiven anything.
   */
  readonly maxKeys?: number
  /** Default: the system's, monotonic. Tests pass a `manualClock()`. */
  readonly clock?: Clock
  /**
   * Says that each process is to have limits of its own, and so switches off the warning
   * `SLUICE_PER_PROCESS` of a process that is one of several. Default false.
   */
  readonly perProcess?: boolean
}

/**
 * compactStore is for millions of keys: 22 to 32 bytes each with a one-number rule, whatever the
 * length of the key, and no pause for the garbage collector or for growing. It keeps a keyed
 * 60-bit fingerprint in place of each key, so it cannot list keys, and two keys share a state with
 * a probability of about n² / 2^61 for n keys. It holds every rule but the sliding window log.
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
