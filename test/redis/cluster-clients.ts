import { once } from 'node:events'
import { GlideClusterClient, Logger } from '@valkey/valkey-glide'
import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import type { RedisClient } from 'sluice/redis'
import type { RedisCluster } from './cluster.ts'

/** kinds are the client libraries to test. */
export const kinds = ['ioredis', 'node-redis', 'valkey-glide'] as const
export type Kind = (typeof kinds)[number]

/** OpenClient is a client that is connected. */
export interface OpenClient {
  readonly client: RedisClient
  close(): void
}

// Otherwise valkey-glide would print every error that it passes on.
Logger.setLoggerConfig('off')

/** openCluster connects a client of each kind, set to fail at once and to find a new master soon. */
export const openCluster: Record<Kind, (cluster: RedisCluster) => Promise<OpenClient>> = {
  async ioredis({ addresses }) {
    const client = new Cluster(addresses, {
      enableOfflineQueue: false,
      retryDelayOnFailover: 0,
      slotsRefreshInterval: 1_000,
    })
    client.on('error', () => {})
    await once(client, 'ready')
    return { client, close: () => client.disconnect() }
  },

  async 'node-redis'({ addresses }) {
    const client = createCluster({
      rootNodes: addresses.map((socket) => ({ socket })),
      defaults: { disableOfflineQueue: true, socket: { reconnectStrategy: 100 } },
      topologyRefreshOnReconnectionAttemptStrategy: 200,
    })
    client.on('error', () => {})
    await client.connect()
    return { client, close: () => client.destroy() }
  },

  async 'valkey-glide'({ addresses }) {
    const client = await GlideClusterClient.createClient({ addresses, requestTimeout: 1_000 })
    return { client, close: () => client.close() }
  },
}
