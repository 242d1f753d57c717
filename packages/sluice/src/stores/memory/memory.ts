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
   * Maximum number of keys per limiter. Default 1,000,000; at most 16,000,000. A full store evicts
   * a key that is nearly full again, and unknown keys start with the units that evicted keys had
   * used.
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
 * memoryStore keeps keys in this process, exactly and listable. Several limiters may share it. It
 * sets no timers: a key that is full again counts as absent, and its row is reused.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptions('memoryStore', options, ['maxKeys', 'clock', 'perProcess'])
  const { maxKeys = 1_000_000, clock = systemClock, perProcess } = options
  checkWhole('memoryStore: maxKeys', maxKeys, 1, 16_000_000)
  checkProcesses('memoryStore', perProcess)
  return openMemory(maxKeys, clock)
}

/** openMemory creates a memory store from checked options. */
export function openMemory(maxKeys: number, clock: Clock): Store {
  const nowUs = steadyClock(clock)
  const makeTable = () => createTable((care) => createMemoryRows(maxKeys, care), nowUs) as Table
  return { kind: 'sync', clock, open: openTables(makeTable) }
}
