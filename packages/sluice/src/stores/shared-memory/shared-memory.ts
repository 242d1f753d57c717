import { type Clock, steadyClock, systemClock } from '../../core/clock.ts'
import { SluiceError, shown } from '../../core/errors.ts'
import { checkOptions, checkWhole } from '../../core/options.ts'
import { checkProcesses } from '../../core/processes.ts'
import type { Rule } from '../../core/rule.ts'
import { type Column, createLayout } from '../../rows/layout.ts'
import { mismatch, unsupported } from '../../rows/store-errors.ts'
import { newSecret } from '../hash/fingerprint.ts'
import { openTables } from '../opened.ts'
import type { Store, Table } from '../store.ts'
import {
  type ClaimedRule,
  formatBuffer,
  HEAD_BYTES,
  isFormatted,
  openDirectory,
} from './directory.ts'
import { regionOf } from './region.ts'
import { createSharedTable } from './shared-table.ts'

/** SharedMemoryOptions are the options of `sharedMemoryStore`. */
export interface SharedMemoryOptions {
  /**
   * Maximum number of keys per limiter. Default 1,000,000; at most 50,000,000. A full store evicts a
   * key that is nearly full again, and unknown keys start with the units that evicted keys had used.
   */
  readonly maxKeys?: number
  /**
   * Maximum size of the buffer in bytes. It grows when a limiter claims its table. Default: enough
   * for 32 limiters of one one-number rule each; each field of a key counts as a limiter.
   */
  readonly maxBytes?: number
  /**
   * Default: the system clock, made monotonic. A clock of your own must be the same in every
   * thread.
   */
  readonly clock?: Clock
  /**
   * Says that each process is to have limits of its own, and so switches off the warning
   * `SLUICE_PER_PROCESS` of a process that is one of several. Default false.
   */
  readonly perProcess?: boolean
}

/** SharedMemoryHandle is what other threads get, through `workerData` or `postMessage`. */
export interface SharedMemoryHandle {
  /** What all threads share. */
  readonly buffer: SharedArrayBuffer
  /** `performance.timeOrigin` of this process; undefined if the store has a clock of its own. */
  readonly timeOrigin: number | undefined
}

/** SharedMemoryStore is a store that other threads can attach to. */
export interface SharedMemoryStore extends Store {
  /** Pass it to other threads, which call `attachSharedMemory(handle)`. */
  readonly handle: SharedMemoryHandle
}

/**
 * sharedMemoryStore keeps states in one SharedArrayBuffer for all threads of this process. Each
 * thread creates the same limiters, on the store or on `attachSharedMemory(store.handle)`, and all
 * threads together admit what one limiter would. Like compactStore it keeps fingerprints in place
 * of keys and does not support the sliding window log. A thread may be terminated at any time.
 */
export function sharedMemoryStore(options: SharedMemoryOptions = {}): SharedMemoryStore {
  checkOptions('sharedMemoryStore', options, ['maxKeys', 'maxBytes', 'clock', 'perProcess'])
  const { maxKeys = 1_000_000, clock = systemClock, perProcess } = options
  checkWhole('sharedMemoryStore: maxKeys', maxKeys, 1, 50_000_000)
  const column = { name: '', algorithm: '', grows: false, cells: 1, at: 0 }
  const room = Math.min(HEAD_BYTES + 32 * regionOf(maxKeys, [column]).bytes, USUAL_MOST_BYTES)
  const { maxBytes = room } = options
  checkWhole('sharedMemoryStore: maxBytes', maxBytes, HEAD_BYTES, Number.MAX_SAFE_INTEGER)
  checkProcesses('sharedMemoryStore', perProcess)
  const buffer = newBuffer(maxBytes)
  formatBuffer(buffer, maxKeys, newSecret())
  const timeOrigin = clock === systemClock ? performance.timeOrigin : undefined
  return openShared({ buffer, timeOrigin }, clock)
}

/**
 * attachSharedMemory opens another thread's store in this thread. If that store was created with its
 * own `clock`, pass the same clock here.
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
      ? 'the store was created with its own clock. Pass the same one: attachSharedMemory(handle, { clock }).'
      : 'all threads must read one clock, but the store was created with the system’s, with the time ' +
          `origin ${handle.timeOrigin}, and this thread’s ${timeOrigin ? `is ${timeOrigin}` : 'is another'}.`,
  )
}

/** The largest shared buffer that every supported version of Node can allocate. */
const USUAL_MOST_BYTES = 2 ** 32

function newBuffer(maxBytes: number): SharedArrayBuffer {
  try {
    return new SharedArrayBuffer(HEAD_BYTES, { maxByteLength: maxBytes })
  } catch (cause) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `sharedMemoryStore: maxBytes ${maxBytes.toLocaleString('en')} is more than this system can ` +
        `share. Up to ${USUAL_MOST_BYTES.toLocaleString('en')} should work.`,
      { cause },
    )
  }
}

function openShared(handle: SharedMemoryHandle, clock: Clock): SharedMemoryStore {
  const nowUs = steadyClock(clock)
  const directory = openDirectory(handle.buffer)
  const open = openTables((name, ruleLists, mayChange) => {
    const wanted = claimedRules(ruleLists, mayChange)
    const claimed = directory.claim(name, wanted)
    if (listed(claimed.rules) !== listed(wanted)) {
      throw mismatch(name, listed(claimed.rules), listed(wanted))
    }
    const rules = ruleLists.flat()
    const algorithms = claimed.region.columns.map((column) => ruleOf(rules, column).algorithm)
    return createSharedTable(claimed, algorithms, nowUs) as Table
  })
  return { kind: 'sync', clock, owner: handle.buffer, open, handle }
}

/**
 * Lists the rules of a table with their cells. If keys may get other limits later, each rate has
 * room for a fraction.
 */
function claimedRules(
  ruleLists: readonly (readonly Rule[])[],
  mayChange: boolean,
): readonly ClaimedRule[] {
  const rules = ruleLists.flat()
  const list = rules.find((rule) => rule.algorithm.grows)
  if (list) throw unsupported(list)
  const layout = createLayout()
  for (const each of ruleLists) layout.use(each, () => {})
  const stateless = rules.filter((rule) => rule.algorithm.cells(rule) === 0)
  return [
    ...layout.columns.map((column): ClaimedRule => {
      const { algorithm, ...rule } = ruleOf(rules, column)
      const most = algorithm.cells({ ...rule, algorithm, gapRest: 1, gapParts: 2 })
      const cells = mayChange ? Math.max(column.cells, most) : column.cells
      return [column.name, column.algorithm, cells]
    }),
    ...stateless.map((rule): ClaimedRule => [rule.name, rule.algorithm.name, 0]),
  ]
}

function ruleOf(rules: readonly Rule[], { name, algorithm }: Column): Rule {
  return rules.find((rule) => rule.name === name && rule.algorithm.name === algorithm)!
}

/** Returns a text that identifies the names and algorithms of rules, in any order. */
function listed(rules: readonly ClaimedRule[]): string {
  const names = rules.map(([name, algorithm]) => `"${name}" (${algorithm})`)
  return [...new Set(names)].sort().join(', ')
}
