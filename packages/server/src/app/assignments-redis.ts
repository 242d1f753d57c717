import { randomUUID } from 'node:crypto'
import type { Cluster, Redis } from 'ioredis'
import { parseRule, SluiceError } from 'sluice'
import { localLimiter } from '../local-limiter.ts'
import type { Change, Kept } from './assignments.ts'

/** RedisAssignments keeps assignments in one hash, for all servers that share a Redis. */
export interface RedisAssignments {
  write(change: Change): Promise<void>
  /** All assignments if they have changed since the last call; else undefined. */
  news(): Promise<Kept | undefined>
}

/** The timeout of each call; Redis may still carry it out later. */
const TIMEOUT_MS = 1_000

const VERSION = 'version'
const none: Kept = { tiers: new Map(), rules: new Map() }

/**
 * redisAssignments uses the hash `PREFIX:assignments`, with a field `tier:KEY` or `rules:KEY` for
 * each client, and a version that changes with each write. `complain` gets fields that are invalid.
 */
export function redisAssignments(
  client: Redis | Cluster,
  prefix: string,
  complain: (message: string) => void,
): RedisAssignments {
  const hash = `${prefix}:assignments`
  let seen: string | null = null

  /** ioredis queues commands until there is a connection, so this rejects after a timeout. */
  async function ask<T>(send: () => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('it did not answer in time')), TIMEOUT_MS)
    })
    try {
      if (client.status !== 'ready') throw new Error('there is no connection')
      return await Promise.race([send(), late])
    } catch (cause) {
      throw unavailable(cause as Error)
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async write({ key, kind, value }) {
      const field = `${kind}:${key}`
      const done = await ask(() => {
        const changes = client.multi()
        if (value === undefined) changes.hdel(hash, field)
        else changes.hset(hash, field, typeof value === 'string' ? value : JSON.stringify(value))
        // Random, since a count could repeat in a hash that was lost and made anew.
        return changes.hset(hash, VERSION, randomUUID()).exec()
      })
      const failed = done?.find(([error]) => error)?.[0]
      if (failed) throw unavailable(failed)
    },
    async news() {
      const version = await ask(() => client.hget(hash, VERSION))
      if (version === seen) return undefined
      const fields = version === null ? {} : await ask(() => client.hgetall(hash))
      seen = fields[VERSION] ?? null
      return version === null ? none : keptOf(fields, complain)
    },
  }
}

function unavailable(cause: Error): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_UNAVAILABLE',
    `Redis, which keeps the assignments, is unavailable: ${cause.message}. Try again later.`,
    { cause },
  )
}

function keptOf(fields: Record<string, string>, complain: (message: string) => void): Kept {
  const tiers = new Map<string, string>()
  const rules = new Map<string, readonly string[]>()
  for (const [field, value] of Object.entries(fields)) {
    if (field === VERSION) continue
    const [, kind, key] = /^(tier|rules):(.{1,1024})$/s.exec(field) ?? []
    const texts = kind === 'rules' ? rulesOf(value) : undefined
    if (kind === 'tier') tiers.set(key, value)
    else if (texts) rules.set(key, texts)
    else complain(`the assignment ${JSON.stringify(field)} in Redis is invalid and is ignored`)
  }
  return { tiers, rules }
}

function rulesOf(value: string): readonly string[] | undefined {
  try {
    const texts: string[] = JSON.parse(value)
    // Throws for rules that cannot be combined, which would fail every request.
    localLimiter(texts.map((text) => parseRule(text)))
    return texts
  } catch {
    return undefined
  }
}
