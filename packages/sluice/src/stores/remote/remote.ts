import { type Clock, systemClock } from '../../core/clock.ts'
import { SluiceError, shown } from '../../core/errors.ts'
import { checkFunction, checkOptions } from '../../core/options.ts'
import type { AsyncStore } from '../store.ts'
import type { DenyCacheOptions } from './deny-cache.ts'
import type { RowChange } from './engine.ts'
import type { LeaseOptions } from './leases.ts'
import { openRemote, type RemoteOptions, remoteOptions } from './open-remote.ts'
import { createRowsEngine } from './rows-engine.ts'

export type { DenyCacheOptions, LeaseOptions, RowChange }

/** RowsRead is the result of `read`: the rows in the order of the given names. */
export interface RowsRead {
  /** The text of each row; null for a row that does not exist. */
  readonly texts: readonly (string | null)[]
  /** The version of each row, passed back to `swap`. Only for engines that do not compare texts. */
  readonly versions?: readonly unknown[]
  /** The engine's clock, in microseconds since 1970. Omitted with `time: 'caller'`. */
  readonly nowUs?: number
}

/**
 * RemoteRows is an engine that stores texts by name and supports compare-and-swap. Names have up to
 * 7,000 characters. If one of its promises rejects, the store counts as failed.
 */
export interface RemoteRows {
  /** Reads up to 128 rows. */
  read(names: readonly string[]): Promise<RowsRead>
  /**
   * Compare-and-swap: replaces all rows and resolves to true if none has changed since it was read;
   * else changes nothing and resolves to false. From `untilUs` on it should change nothing and
   * reject.
   */
  swap(changes: readonly RowChange[]): Promise<boolean>
  /**
   * `'row'` if it can only swap single rows: `swap` then gets one change at a time. Default
   * `'all'`.
   */
  readonly atomic?: 'all' | 'row'
  /** `'caller'` if it has no clock: the clock of each node then decides. Default `'engine'`. */
  readonly time?: 'engine' | 'caller'
  /** Lists the names of all rows that begin with `start`, page by page. Names may repeat. */
  list?(start: string): AsyncIterable<readonly string[]>
}

/** RemoteStoreOptions are the options of `remoteStore`. */
export interface RemoteStoreOptions extends RemoteOptions {
  /** The clock that decides with `time: 'caller'`, and by which waiting calls sleep. */
  readonly clock?: Clock
}

/**
 * remoteStore keeps rows in any engine that can read texts and compare-and-swap them. It reads the
 * row of a key, decides with the algorithms' own code and swaps the row; if another node has
 * changed the row, it retries. Meanwhile it collects further calls, up to 128 per round trip.
 */
export function remoteStore(rows: RemoteRows, options: RemoteStoreOptions = {}): AsyncStore {
  checkRows(rows)
  checkOptions('remoteStore', options, [...remoteOptions, 'clock'])
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
