import { type Clock, steadyClock, systemClock } from '../../core/clock.ts'
import { checkOptions, checkWhole } from '../../core/options.ts'
import { checkProcesses } from '../../core/processes.ts'
import { createTable } from '../../rows/table.ts'
import { openTables } from '../opened.ts'
import type { Store, Table } from '../store.ts'
import { createMemoryRows } from './memory-rows.ts'

/** MemoryStoreOptions are the options of `memoryStore`. */
export interface MemoryStoreOptions {
  /**
   * Keys kept at most, for each limiter. Default 1,000,000; at most 16,000,000. When full, a state
   * that is near to fresh goes first, and nobody is forgiven anything.
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
 * memoryStore keeps exact keys in this process, listable, for all limiters it is given to. It
 * sets no timers: a state that has become fresh counts as absent, and its place is reused.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptions('memoryStore', options, ['maxKeys', 'clock', 'perProcess'])
  const { maxKeys = 1_000_000, clock = systemClock, perProcess } = options
  checkWhole('memoryStore: maxKeys', maxKeys, 1, 16_000_000)
  checkProcesses('memoryStore', perProcess)
  return openMemory(maxKeys, clock)
}

/** openMemory is a memoryStore of checked options. */
export function openMemory(maxKeys: number, clock: Clock): Store {
  const nowUs = steadyClock(clock)
  const makeTable = () => createTable((care) => createMemoryRows(maxKeys, care), nowUs) as Table
  return { kind: 'sync', clock, open: openTables(makeTable) }
}
