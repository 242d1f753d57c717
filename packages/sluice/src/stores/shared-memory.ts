import type { Algorithm } from '../algorithms/algorithm.ts'
import { type Clock, steadyClock, systemClock } from '../clock.ts'
import { SluiceError, shown } from '../errors.ts'
import { checkOptions, checkWhole } from '../options.ts'
import type { Rule } from '../rule.ts'
import { newSecret } from './fingerprint.ts'
import { type Column, columnsOf, createLayout } from './layout.ts'
import { openTables } from './opened.ts'
import { formatBuffer, HEAD_BYTES, isFormatted, openDirectory } from './shared/directory.ts'
import { regionOf } from './shared/region.ts'
import { createSharedTable } from './shared/shared-table.ts'
import type { Store, Table } from './store.ts'
import { mismatch, unsupported } from './store-errors.ts'

export interface SharedMemoryOptions {
  /**
   * Keys kept at most, for each limiter. Default 1,000,000; at most 50,000,000. When full, the
   * state nearest to fresh goes first, and nobody is forgiven anything.
   */
  readonly maxKeys?: number
  /**
   * Bytes that the buffer may grow to; it grows when a limiter claims its table. Default: enough
   * for eight limiters of one one-number rule each.
   */
  readonly maxBytes?: number
  /** Default: the system's, monotonic. One that every thread can read alike, in every thread. */
  readonly clock?: Clock
}

/** SharedMemoryHandle is passed to other threads, through `workerData` or `postMessage`. */
export interface SharedMemoryHandle {
  readonly buffer: SharedArrayBuffer
  /** The origin of the system's clock in this process; undefined with a clock of one's own. */
  readonly timeOrigin: number | undefined
}

export interface SharedMemoryStore extends Store {
  readonly handle: SharedMemoryHandle
}

/**
 * sharedMemoryStore keeps states in one SharedArrayBuffer for all threads of this process. Each
 * thread makes the same limiters, on the store or on `attachSharedMemory(store.handle)`, and they
 * decide as one. Like compactStore it keeps fingerprints in place of keys, and cannot hold the
 * sliding window log. A thread may be terminated at any time.
 */
export function sharedMemoryStore(options: SharedMemoryOptions = {}): SharedMemoryStore {
  checkOptions('sharedMemoryStore', options, ['maxKeys', 'maxBytes', 'clock'])
  const { maxKeys = 1_000_000, clock = systemClock } = options
  checkWhole('sharedMemoryStore: maxKeys', maxKeys, 1, 50_000_000)
  const column = { name: '', algorithm: '', grows: false, cells: 1, at: 0 }
  const { maxBytes = HEAD_BYTES + 8 * regionOf(maxKeys, [column]).bytes } = options
  checkWhole('sharedMemoryStore: maxBytes', maxBytes, HEAD_BYTES, Number.MAX_SAFE_INTEGER)
  const buffer = new SharedArrayBuffer(HEAD_BYTES, { maxByteLength: maxBytes })
  formatBuffer(buffer, maxKeys, newSecret())
  const timeOrigin = clock === systemClock ? performance.timeOrigin : undefined
  return openShared({ buffer, timeOrigin }, clock)
}

/**
 * attachSharedMemory gives another thread's store to this one. A store that was made with a clock
 * of its own needs the same `clock` here.
 */
export function attachSharedMemory(
  handle: SharedMemoryHandle,
  options: { readonly clock?: Clock } = {},
): SharedMemoryStore {
  checkOptions('attachSharedMemory', options, ['clock'])
  if (typeof handle !== 'object' || !isFormatted(handle?.buffer)) {
    throw new SluiceError(
      'SLUICE_OPTION',
      'attachSharedMemory takes the `handle` of a sharedMemoryStore() of the same process and ' +
        `version, passed through workerData or postMessage, got ${shown(handle)}. Shared memory ` +
        'does not reach other processes; for those use Redis.',
    )
  }
  const { clock = systemClock } = options
  const timeOrigin = clock === systemClock ? performance.timeOrigin : undefined
  if (handle.timeOrigin === timeOrigin) return openShared(handle, clock)
  throw new SluiceError(
    'SLUICE_CLOCK',
    handle.timeOrigin === undefined
      ? 'the store was made with a clock of its own. Pass the same: attachSharedMemory(handle, { clock }).'
      : 'all threads must read one clock, but the store was made with the system’s, of the time ' +
          `origin ${handle.timeOrigin}, and this thread’s ${timeOrigin ? `is ${timeOrigin}` : 'is another'}.`,
  )
}

function openShared(handle: SharedMemoryHandle, clock: Clock): SharedMemoryStore {
  const nowUs = steadyClock(clock)
  const directory = openDirectory(handle.buffer)
  const open = openTables((name, ruleLists) => {
    const rules = columnsOf(ruleLists.flat())
    const claimed = directory.claim(name, rules, columnsFor(ruleLists))
    if (claimed.rules !== rules) throw mismatch(name, claimed.rules, rules)
    const algorithms = claimed.region.columns.map((column) => algorithmOf(ruleLists.flat(), column))
    return createSharedTable(claimed, algorithms, nowUs) as Table
  })
  return { clock, open, handle }
}

/**
 * The columns of a table for these rules. Where there are several lists, keys may get other figures
 * later, so there is room for the fraction that a rate may have.
 */
function columnsFor(ruleLists: readonly (readonly Rule[])[]): readonly Column[] {
  const list = ruleLists.flat().find((rule) => rule.algorithm.grows)
  if (list) throw unsupported(list)
  const layout = createLayout()
  for (const rules of ruleLists) layout.use(rules, () => {})
  if (ruleLists.length === 1) return layout.columns
  let at = 0
  return layout.columns.map((column) => {
    const { algorithm, ...rule } = ruleLists.flat().find(isOf(column))!
    const fractional = algorithm.cells({ ...rule, algorithm, gapRest: 1, gapParts: 2 })
    const cells = Math.max(column.cells, fractional)
    at += cells
    return { ...column, cells, at: at - cells }
  })
}

const isOf = (column: Column) => (rule: Rule) =>
  rule.name === column.name && rule.algorithm.name === column.algorithm

function algorithmOf(rules: readonly Rule[], column: Column): Algorithm {
  return rules.find(isOf(column))!.algorithm
}
