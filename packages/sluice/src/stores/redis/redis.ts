import { type Clock, systemClock } from '../../clock.ts'
import { checkOptions } from '../../options.ts'
import type { Rule } from '../../rule.ts'
import { columnsOf } from '../layout.ts'
import type { AsyncStore, AsyncTable } from '../store.ts'
import { mismatch, untwinned } from '../store-errors.ts'
import { type RedisClient, senderOf } from './client.ts'
import { escapeName } from './names.ts'
import { createRedisFigures } from './redis-figures.ts'
import { createRedisTable, type Run } from './redis-table.ts'
import { script } from './script.ts'
import { twinNames } from './twins/twins.ts'

export interface RedisStoreOptions {
  /** What all keys begin with. Default `'sluice'`. */
  readonly prefix?: string
}

/**
 * redisStore keeps states in Redis, for any number of nodes: each decision is one atomic script, at
 * one instant of Redis's own clock.
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): AsyncStore {
  checkOptions('redisStore', options, ['prefix'])
  return openRedis(client, options, systemClock, script)
}

/** openRedis is a `redisStore` that runs a given script, and whose callers sleep by `clock`. */
export function openRedis(
  client: RedisClient,
  { prefix = 'sluice' }: RedisStoreOptions,
  clock: Clock,
  text: string,
): AsyncStore {
  const send = senderOf(client)
  const run = runnerOf(send, text)
  const tables = new Map<string, { columns: string; table: AsyncTable }>()
  const check = (rule: Rule) => {
    if (rule.algorithm.cells(rule) > 0 && !twinNames.has(rule.algorithm.name)) throw untwinned(rule)
  }
  return {
    clock,
    openAsync(name, ruleLists) {
      const columns = columnsOf(ruleLists.flat())
      const opened = tables.get(name)
      if (opened && opened.columns !== columns) throw mismatch(name, opened.columns, columns)
      if (opened) return opened.table
      const own = name === 'default' ? prefix : `${prefix}:${escapeName(name)}`
      const figures = createRedisFigures(send, `${own}:figures`)
      const table = createRedisTable(send, run, own, figures, check)
      for (const rules of ruleLists) table.use(rules)
      tables.set(name, { columns, table })
      return table
    },
  }
}

/** Runs the script by its hash, and in full where the server does not know it yet. */
function runnerOf(send: ReturnType<typeof senderOf>, text: string): Run {
  let sha: Promise<string> | undefined
  return async (keys, args) => {
    sha ??= sha1(text)
    const rest = [String(keys.length), ...keys, ...args]
    try {
      return await send(keys[0], ['EVALSHA', await sha, ...rest])
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return send(keys[0], ['EVAL', text, ...rest])
    }
  }
}

async function sha1(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
