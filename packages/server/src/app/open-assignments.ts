import type { Cluster, Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { Assignments } from '../limits.ts'
import type { Settings } from '../settings.ts'
import { createAssignments, type Kept, type OpenAssignments } from './assignments.ts'
import { readAssignments, writeAssignments } from './assignments-file.ts'
import { type RedisAssignments, redisAssignments } from './assignments-redis.ts'

/** How often a server checks for changes by other servers. */
const LOOK_MS = 1_000

/** The longest time that the start waits for a connection to Redis. */
const START_MS = 2_000

const nothing: Kept = { tiers: new Map(), rules: new Map() }

/** AssignmentOptions say where assignments are kept, and what to call after changes. */
export interface AssignmentOptions {
  readonly settings: Settings
  /** Set if the store is in Redis. */
  readonly client: Redis | Cluster | undefined
  readonly logger: Logger
  onChange(key: string): void
}

/**
 * openAssignments opens the tiers and rules that operators assign at run time. In Redis, a change
 * by another server applies here within a second or two; while Redis is unavailable, the last known
 * assignments stay in effect.
 */
export async function openAssignments(
  options: AssignmentOptions,
): Promise<{ assignments: Assignments; close(): void }> {
  const { settings, client, onChange, logger } = options
  const { assignments: where, store } = settings
  if (where.kind === 'redis' && client) {
    const kept = redisAssignments(client, store.prefix, (message) => logger.warn(message))
    await Promise.race([connected(client), pause(START_MS)])
    const first = await kept.news().catch((error) => {
      const message = 'Redis unavailable; assigned tiers and rules do not apply until it is reached'
      logger.warn({ error: error.message }, message)
    })
    const assignments = createAssignments(first ?? nothing, kept.write, onChange)
    return { assignments, close: watch(kept, assignments) }
  }
  const file = where.kind === 'file' ? where.file : undefined
  const kept = file === undefined ? nothing : await readAssignments(file)
  const assignments = createAssignments(
    kept,
    async (_change, all) => {
      if (file !== undefined) await writeAssignments(file, all)
    },
    onChange,
  )
  return { assignments, close() {} }
}

function watch(kept: RedisAssignments, assignments: OpenAssignments): () => void {
  let isLooking = false
  const timer = setInterval(async () => {
    if (isLooking) return
    isLooking = true
    try {
      const news = await kept.news()
      if (news) assignments.replace(news)
    } catch {
      // The limiters report that Redis is unavailable.
    } finally {
      isLooking = false
    }
  }, LOOK_MS)
  return () => clearInterval(timer)
}

function connected(client: Redis | Cluster): Promise<void> {
  if (client.status === 'ready') return Promise.resolve()
  return new Promise((resolve) => client.once('ready', () => resolve()))
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}
