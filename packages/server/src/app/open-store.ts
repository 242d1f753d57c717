import { Cluster, Redis } from 'ioredis'
import { type AsyncStore, memoryStore, type Store } from 'sluice'
import { redisStore } from 'sluice/redis'
import type { StoreSettings } from '../settings.ts'

/** OpenStore is a store with its connection. */
export interface OpenStore {
  readonly store: Store | AsyncStore
  /** The client of a store in Redis; undefined for memory. */
  readonly client: Redis | Cluster | undefined
  /** Host and port, without credentials; empty for memory. */
  readonly address: string
  /** Why there is no connection; undefined if there is one, or if the reason is unknown. */
  trouble(): string | undefined
  close(): void
}

/**
 * openStore opens the store of a configuration. It also starts while Redis is down, and reconnects.
 */
export function openStore(
  { kind, urls, prefix, maxKeys }: StoreSettings,
  onError: (error: Error) => void,
): OpenStore {
  if (kind === 'memory') {
    const store = memoryStore({ maxKeys })
    return { store, client: undefined, address: '', trouble: () => undefined, close() {} }
  }
  let trouble: string | undefined
  const client =
    kind === 'cluster'
      ? new Cluster(urls.map(nodeOf), { redisOptions: optionsOf(urls[0]) })
      : new Redis(urls[0])
  // Without a listener a failed connection would end the process.
  client.on('error', (error: Error) => {
    trouble = reasonOf(error)
    onError(error)
  })
  client.on('ready', () => {
    trouble = undefined
  })
  return {
    store: redisStore(client, { prefix }),
    client,
    address: urls
      .map(nodeOf)
      .map(({ host, port }) => `${host}:${port}`)
      .join(', '),
    trouble: () => trouble,
    close: () => client.disconnect(),
  }
}

/** The cause of an error: of a Cluster its last node's, of a host with several addresses all. */
function reasonOf(error: Error): string {
  const { lastNodeError, errors = [] } = error as Partial<AggregateError> & {
    lastNodeError?: Error
  }
  if (lastNodeError) return `${error.message} ${reasonOf(lastNodeError)}`
  return error.message || errors.map(reasonOf).join('; ') || error.name
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
