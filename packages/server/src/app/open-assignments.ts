import type { Cluster, Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { Assignments } from '../limits.ts'
import type { Settings } from '../settings.ts'
import { createAssignments, type Kept, type OpenAssignments } from './assignments.ts'
import { readAssignments, writeAssignments } from './assignments-file.ts'
import { type RedisAssignments, redisAssignments } from './assignments-redis.ts'

/** So often a server looks whether another has changed something. */
const LOOK_MS = 1_000

/** The longest that a start waits for a connection to Redis. */
const START_MS = 2_000

const nothing: Kept = { tiers: new Map(), rules: new Map() }

/** AssignmentOptions are where assignments are kept, and who is told of changes. */
export interface AssignmentOptions {
  readonly settings: Settings
  /** There where the store is in Redis. */
  readonly client: Redis | Cluster | undefined
  readonly logger: Logger
  onChange(key: string): void
}

/**
 * openAssignments opens the tiers and rules that were given to clients at run time. In Redis, what
 * another server changes holds here after a second; while Redis is away, what was known last.
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
      const told = 'Redis cannot be reached; tiers given at run time are not known until it can'
      logger.warn({ error: error.message }, told)
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
      // That Redis is away is told by the limiters.
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
