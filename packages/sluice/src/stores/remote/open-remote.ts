import type { Clock } from '../../core/clock.ts'
import { MOST_UNITS } from '../../core/cost.ts'
import { SluiceError, shown } from '../../core/errors.ts'
import { checkOptions, checkWhole } from '../../core/options.ts'
import { fieldsIn, type Rule } from '../../core/rule.ts'
import { createAsyncLimiter } from '../../limiter/async-limiter.ts'
import { unjoined, unleasable, unleasableFields } from '../../rows/store-errors.ts'
import { openTables } from '../opened.ts'
import type { AsyncStore } from '../store.ts'
import type { DenyCacheOptions } from './deny-cache.ts'
import type { Engine } from './engine.ts'
import { checkSecret, createKeyHash } from './hashed-keys.ts'
import type { LeaseOptions } from './leases.ts'
import { type RowNames, rowNames } from './names.ts'
import { createRemoteTable } from './remote-table.ts'

/** RemoteOptions are the options of every remote store. */
export interface RemoteOptions {
  /** The start of all row names. Default `'sl'`: short names take less memory. */
  readonly prefix?: string
  /**
   * Caches refusals: the same key and cost is refused without a round trip until its retry time, for
   * at most `maxMs`. `true` uses the defaults. Default: off.
   */
  readonly denyCache?: boolean | DenyCacheOptions
  /**
   * Takes units of busy keys ahead of time, so that most calls need no round trip. Only for
   * algorithms that can lease, such as `tokenBucket`. Default: off.
   */
  readonly lease?: LeaseOptions
  /**
   * A secret of at least 16 characters. The store then sees a keyed hash in place of each key, so
   * that addresses and names stay in this process; `entries()` lists hashes. All nodes need the
   * same secret. Default: keys are stored as they are.
   */
  readonly hashKeys?: string
}

/** The names of these options, for checks. */
export const remoteOptions = ['prefix', 'denyCache', 'lease', 'hashKeys']

/**
 * openRemote creates a store. It makes an engine for each limiter. `where` names the store in
 * errors, and `owner` is the object on which the engine keeps its rows, such as a client.
 */
export function openRemote(
  where: string,
  owner: object,
  { prefix = 'sl', denyCache: denyOptions, lease: leaseOptions, hashKeys }: RemoteOptions,
  clock: Clock,
  makeEngine: (names: RowNames) => Engine,
): AsyncStore {
  checkPrefix(where, prefix)
  checkSecret(where, hashKeys)
  const denyCache = checkDenyCache(where, denyOptions)
  const lease = checkLease(where, leaseOptions)
  const open = openTables((name, ruleLists) => {
    const rules = ruleLists.flat()
    const fields = fieldsIn(rules)
    const names =
      fields.length > 0
        ? fields.map((field) => rowNames(prefix, name, field))
        : [rowNames(prefix, name)]
    const engine = makeEngine(names[0])
    if (fields.length > 0 && lease) throw unleasableFields(where)
    checkSlots(engine, fields, rules)
    const hash = hashKeys ? createKeyHash(hashKeys) : undefined
    return createRemoteTable({ engine, names, fields, check, denyCache, lease, hash })
  })

  function check(rule: Rule): void {
    const { algorithm } = rule
    if (lease && algorithm.cells(rule) > 0 && algorithm.lease === 'never') throw unleasable(rule)
  }

  return {
    kind: 'async',
    clock,
    owner,
    rowsOf: (limiter) => rowNames(prefix, limiter).start,
    createLimiter: createAsyncLimiter,
    open: (name, ruleLists, timeoutMs, mayChange) =>
      open(name, ruleLists, mayChange).open(timeoutMs),
  }
}

/** Refuses rules that cannot give units back if the engine spends from several rows one by one. */
function checkSlots(engine: Engine, fields: readonly string[], rules: readonly Rule[]): void {
  const slow = rules.find(({ algorithm }) => algorithm.delays)
  if (slow && fields.length > 1 && (engine.isRowwise || engine.hasSlots)) throw unjoined(slow)
}

function checkPrefix(where: string, prefix: unknown): void {
  if (typeof prefix === 'string' && /^[^{}/]{1,256}$/.test(prefix)) return
  throw new SluiceError(
    'SLUICE_OPTION',
    `${where}: prefix must be a string of 1 to 256 characters without braces and slashes, got ` +
      `${shown(prefix)}.`,
  )
}

function checkDenyCache(where: string, given: unknown): Required<DenyCacheOptions> | undefined {
  if (given === undefined || given === false) return undefined
  const options: DenyCacheOptions = given === true ? {} : (given as DenyCacheOptions)
  checkOptions(`${where}: denyCache`, options, ['maxMs', 'maxKeys'])
  const { maxMs = 2_000, maxKeys = 10_000 } = options
  checkWhole(`${where}: denyCache.maxMs`, maxMs, 1, 60_000)
  checkWhole(`${where}: denyCache.maxKeys`, maxKeys, 1, 10_000_000)
  return { maxMs, maxKeys }
}

function checkLease(
  where: string,
  options: LeaseOptions | undefined,
): Required<LeaseOptions> | undefined {
  if (options === undefined) return undefined
  checkOptions(`${where}: lease`, options, ['units', 'leaseMs'])
  const { units, leaseMs = 1_000 } = options
  checkWhole(`${where}: lease.units`, units, 1, MOST_UNITS)
  checkWhole(`${where}: lease.leaseMs`, leaseMs, 10, 60_000)
  return { units, leaseMs }
}
