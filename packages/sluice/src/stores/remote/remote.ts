import { type Clock, systemClock } from '../../core/clock.ts'
import { SluiceError, shown } from '../../core/errors.ts'
import { checkFunction, checkOptions } from '../../core/options.ts'
import type { AsyncStore } from '../store.ts'
import type { DenyCacheOptions } from './deny-cache.ts'
import type { RowChange } from './engine.ts'
import type { LeaseOptions } from './leases.ts'
import { openRemote, type RemoteOptions } from './open-remote.ts'
import { createRowsEngine } from './rows-engine.ts'

export type { DenyCacheOptions, LeaseOptions, RowChange }

/** RowsRead are rows as an engine has them, in the order of the names that were asked for. */
export interface RowsRead {
  /** The text of each row; null where there is none. */
  readonly texts: readonly (string | null)[]
  /** What `swap` is to know each row by, where the engine does not compare texts. */
  readonly versions?: readonly unknown[]
  /** The engine's clock, in microseconds since 1970; left out with `time: 'caller'`. */
  readonly nowUs?: number
}

/**
 * RemoteRows is an engine that keeps texts by name, and can replace a text if it is unchanged. Names
 * have up to 7,000 characters. Its promises may reject, which is a failure of the store.
 */
export interface RemoteRows {
  /** Reads up to 128 rows. */
  read(names: readonly string[]): Promise<RowsRead>
  /**
   * Replaces all these rows if none has changed since it was read, and resolves to true; else it
   * changes nothing and resolves to false. It should change nothing either, and reject, from
   * `untilUs` on.
   */
  swap(changes: readonly RowChange[]): Promise<boolean>
  /** `'row'` if it can only swap single rows: then `swap` gets one change. Default `'all'`. */
  readonly atomic?: 'all' | 'row'
  /** `'caller'` if it has no clock to tell: then the clock of each node decides. Default `'engine'`. */
  readonly time?: 'engine' | 'caller'
  /** The names of all rows that begin with `start`, page by page; some may come twice. */
  list?(start: string): AsyncIterable<readonly string[]>
}

/** RemoteStoreOptions are those of every remote store, and the clock of `time: 'caller'`. */
export interface RemoteStoreOptions extends RemoteOptions {
  /** By which this node decides with `time: 'caller'`, and by which waiting calls sleep. */
  readonly clock?: Clock
}

/**
 * remoteStore keeps rows in anything that can read texts and swap them if unchanged. It reads the row of
 * a key, decides with the algorithms' own code and swaps the row, again if another node was faster;
 * calls that come meanwhile are gathered, up to 128 a trip.
 */
export function remoteStore(rows: RemoteRows, options: RemoteStoreOptions = {}): AsyncStore {
  checkRows(rows)
  checkOptions('remoteStore', options, ['prefix', 'denyCache', 'lease', 'clock'])
  const { clock = systemClock } = options
  return openRemote('remoteStore', rows, options, clock, () => createRowsEngine(rows, clock))
}

function checkRows(rows: unknown): asserts rows is RemoteRows {
  checkOptions('remoteStore: rows', rows, ['read', 'swap', 'atomic', 'time', 'list'])
  const { read, swap, atomic, time, list } = rows as Record<string, unknown>
  for (const [name, value] of Object.entries({ read, swap })) {
    if (value === undefined) {
      throw new SluiceError('SLUICE_OPTION', `remoteStore: rows must have the function ${name}.`)
    }
    checkFunction(`remoteStore: ${name}`, value)
  }
  checkFunction('remoteStore: list', list)
  checkWord('atomic', atomic, ['all', 'row'])
  checkWord('time', time, ['engine', 'caller'])
}

function checkWord(name: string, value: unknown, words: readonly [string, string]): void {
  if (value === undefined || words.includes(value as string)) return
  throw new SluiceError(
    'SLUICE_OPTION',
    `remoteStore: ${name} must be '${words[0]}' or '${words[1]}', got ${shown(value)}.`,
  )
}
