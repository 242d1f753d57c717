import { Cluster, Redis } from 'ioredis'
import { type AsyncStore, memoryStore, type Store } from 'sluice'
import { redisStore } from 'sluice/redis'
import type { StoreSettings } from '../settings.ts'

/** OpenStore is a store, and how to let go of it. */
export interface OpenStore {
  readonly store: Store | AsyncStore
  /** What it is reached by, if it is in Redis. */
  readonly client: Redis | Cluster | undefined
  close(): void
}

/** openStore opens the store of a configuration. It starts with Redis down, and recovers by itself. */
export function openStore(
  { kind, urls, prefix, maxKeys }: StoreSettings,
  onError: (error: Error) => void,
): OpenStore {
  if (kind === 'memory') {
    return { store: memoryStore({ maxKeys }), client: undefined, close() {} }
  }
  const client =
    kind === 'cluster'
      ? new Cluster(urls.map(nodeOf), { redisOptions: optionsOf(urls[0]) })
      : new Redis(urls[0])
  // Without a listener a failed connection would end the process.
  client.on('error', onError)
  return { store: redisStore(client, { prefix }), client, close: () => client.disconnect() }
}

function nodeOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port || 6_379) }
}

function optionsOf(url: string) {
  const { protocol, username, password } = new URL(url)
  return {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  }
}
