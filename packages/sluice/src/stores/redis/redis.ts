import { createHash } from 'node:crypto'
import { type Clock, systemClock } from '../../core/clock.ts'
import { MOST_UNITS } from '../../core/cost.ts'
import { SluiceError, shown } from '../../core/errors.ts'
import { checkOptions, checkWhole } from '../../core/options.ts'
import type { Rule } from '../../core/rule.ts'
import { createAsyncLimiter } from '../../limiter/async-limiter.ts'
import { columnsOf } from '../../rows/layout.ts'
import { mismatch, unleasable, untwinned } from '../../rows/store-errors.ts'
import type { AsyncStore } from '../store.ts'
import { checkScript } from './check-script.ts'
import { connectionOf, type RedisClient, type Send } from './client.ts'
import { decideScript } from './decide-script.ts'
import type { DenyCacheOptions } from './deny-cache.ts'
import type { LeaseOptions } from './leases.ts'
import { escapeName } from './names.ts'
import { createRedisTable, type RedisTable } from './redis-table.ts'
import { createRedisTime } from './redis-time.ts'
import { CLOCK_LINE } from './script.ts'

export type { DenyCacheOptions, LeaseOptions, RedisClient }

export interface RedisStoreOptions {
  /** What all keys begin with. Default `'slu'`: with short names keys take less memory. */
  readonly prefix?: string
  /**
   * Remembers refusals: the same key and cost is refused again without a trip until its retry time,
   * and at most `maxMs`. `true` for the defaults. Default: off.
   */
  readonly denyCache?: boolean | DenyCacheOptions
  /**
   * Takes units of busy keys ahead of time, so that most calls need no trip; only for algorithms that
   * can lease, such as `tokenBucket`. Default: off.
   */
  readonly lease?: LeaseOptions
}

/**
 * redisStore keeps states in Redis, for any number of nodes: each decision is one atomic script, at
 * one instant of Redis's own clock.
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): AsyncStore {
  checkOptions('redisStore', options, ['prefix', 'denyCache', 'lease'])
  return openRedis(client, options, systemClock, CLOCK_LINE)
}

/** openRedis is a `redisStore` whose scripts read the time by a given line. */
export function openRedis(
  client: RedisClient,
  { prefix = 'slu', denyCache: denyOptions, lease: leaseOptions }: RedisStoreOptions,
  clock: Clock,
  clockLine: string,
): AsyncStore {
  checkPrefix(prefix)
  const denyCache = checkDenyCache(denyOptions)
  const lease = checkLease(leaseOptions)
  const connection = connectionOf(client)
  const tables = new Map<string, { columns: string; mayChange: boolean; table: RedisTable }>()

  function makeTable(name: string): RedisTable {
    const own = name === 'default' ? prefix : `${prefix}:${escapeName(name)}`
    const { twins, add } = createTwins()
    const { send } = connection
    const checks = new Map<string, Run>()
    let text = ''
    return createRedisTable({
      connection,
      prefix: own,
      time: createRedisTime(),
      run: runnerOf(send, () => (text ||= decideScript(twins, clockLine))),
      runCheck({ only }, args) {
        const { name, lua } = only!.algorithm
        let run = checks.get(name)
        if (!run) {
          const script = checkScript(lua, clockLine)
          run = runnerOf(send, () => script)
          checks.set(name, run)
        }
        return run(args)
      },
      check(rule) {
        if (lease && rule.algorithm.cells(rule) > 0 && rule.algorithm.lease === 'never') {
          throw unleasable(rule)
        }
        add(rule)
        text = ''
      },
      denyCache,
      lease,
    })
  }

  return {
    kind: 'async',
    clock,
    createLimiter: createAsyncLimiter,
    open(name, ruleLists, timeoutMs, mayChange = false) {
      const columns = columnsOf(ruleLists.flat())
      const opened = tables.get(name)
      if (opened && opened.columns !== columns && !(mayChange && opened.mayChange)) {
        throw mismatch(name, opened.columns, columns)
      }
      const table = opened?.table ?? makeTable(name)
      for (const rules of ruleLists) table.use(rules)
      if (!opened) tables.set(name, { columns, mayChange, table })
      return table.open(timeoutMs)
    },
  }
}

function checkPrefix(prefix: unknown): void {
  if (typeof prefix === 'string' && /^[^{}]{1,256}$/.test(prefix)) return
  throw new SluiceError(
    'SLUICE_OPTION',
    'redisStore: prefix must be a text of 1 to 256 characters without braces, which are for keys, ' +
      `got ${shown(prefix)}.`,
  )
}

function checkDenyCache(given: unknown): Required<DenyCacheOptions> | undefined {
  if (given === undefined || given === false) return undefined
  const options: DenyCacheOptions = given === true ? {} : (given as DenyCacheOptions)
  checkOptions('redisStore: denyCache', options, ['maxMs', 'maxKeys'])
  const { maxMs = 2_000, maxKeys = 10_000 } = options
  checkWhole('redisStore: denyCache.maxMs', maxMs, 1, 60_000)
  checkWhole('redisStore: denyCache.maxKeys', maxKeys, 1, 10_000_000)
  return { maxMs, maxKeys }
}

function checkLease(options: LeaseOptions | undefined): Required<LeaseOptions> | undefined {
  if (options === undefined) return undefined
  checkOptions('redisStore: lease', options, ['units', 'leaseMs'])
  const { units, leaseMs = 1_000 } = options
  checkWhole('redisStore: lease.units', units, 1, MOST_UNITS)
  checkWhole('redisStore: lease.leaseMs', leaseMs, 10, 60_000)
  return { units, leaseMs }
}

/** The twins of the algorithms that the rules of one table use. */
function createTwins() {
  const twins = new Map<string, string>()
  return {
    twins,
    add(rule: Rule): void {
      const { algorithm } = rule
      if (algorithm.cells(rule) === 0 || twins.has(algorithm.name)) return
      if (algorithm.lua === '') throw untwinned(rule)
      twins.set(algorithm.name, algorithm.lua)
    },
  }
}

type Run = (args: string[]) => Promise<readonly unknown[]>

/** Runs a script by its hash, and in full where the server does not know it yet. */
function runnerOf(send: Send, textNow: () => string): Run {
  let text = ''
  let sha = ''
  return async (args) => {
    const wanted = textNow()
    if (text !== wanted) {
      text = wanted
      sha = createHash('sha1').update(text).digest('hex')
    }
    const [, firstKey] = args
    args.unshift(sha)
    try {
      return (await send(firstKey, 'EVALSHA', args)) as unknown[]
    } catch (error) {
      if (!(error instanceof Error && error.message.includes('NOSCRIPT'))) throw error
      args[0] = wanted
      return (await send(firstKey, 'EVAL', args)) as unknown[]
    }
  }
}
