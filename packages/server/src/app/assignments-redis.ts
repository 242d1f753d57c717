import { randomUUID } from 'node:crypto'
import type { Cluster, Redis } from 'ioredis'
import { parseRule, SluiceError } from 'sluice'
import { localLimiter } from '../local-limiter.ts'
import type { Change, Kept } from './assignments.ts'

/** RedisAssignments keeps assignments in one hash, for all servers that share a Redis. */
export interface RedisAssignments {
  write(change: Change): Promise<void>
  /** What is kept now if somebody has changed it since the last time; else undefined. */
  news(): Promise<Kept | undefined>
}

/** Longer nobody waits; what was asked may have been done all the same. */
const TIMEOUT_MS = 1_000

const VERSION = 'version'
const none: Kept = { tiers: new Map(), rules: new Map() }

/**
 * redisAssignments uses the hash `PREFIX:assignments`, with a field `tier:KEY` or `rules:KEY` for
 * each client, and one that counts the changes. `complain` is told of fields that make no sense.
 */
export function redisAssignments(
  client: Redis | Cluster,
  prefix: string,
  complain: (message: string) => void,
): RedisAssignments {
  const hash = `${prefix}:assignments`
  let seen: string | null = null

  /** Commands would wait for a connection, however long that takes. */
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
        // Not a count: that of a hash that was lost, and made anew, could be the same.
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
    `assignments are kept in Redis, which cannot do it now: ${cause.message}. Try again later.`,
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
    else complain(`the assignment ${JSON.stringify(field)} in Redis cannot be read; it is left out`)
  }
  return { tiers, rules }
}

function rulesOf(value: string): readonly string[] | undefined {
  try {
    const texts: string[] = JSON.parse(value)
    // Rules that do not go together would fail with each request.
    localLimiter(texts.map((text) => parseRule(text)))
    return texts
  } catch {
    return undefined
  }
}
