import { Redis, type RedisOptions } from 'ioredis'
import { createClient } from 'redis'
import type { RedisClient } from 'sluice/redis'

/** Connected is a client that reconnects quickly. */
export interface Connected {
  readonly name: string
  readonly client: RedisClient
  /** Calls back each time it is connected and ready. */
  onReady(listener: () => void): void
  close(): void
}

/** Connect creates a client, and reports the errors of its commands. */
export type Connect = (port: number, told: (error: Error) => void) => Connected

const HOST = '127.0.0.1'
const RECONNECT_MS = 20

/** Options that keep ioredis from queueing commands while it is not connected. */
const unqueued: RedisOptions = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
}

/** viaIoredis connects by ioredis, which first waits until the server has loaded its data. */
export const viaIoredis = ioredis(unqueued)

/** viaHastyIoredis connects by ioredis, and is ready even if the server is still loading. */
export const viaHastyIoredis = ioredis({ ...unqueued, enableReadyCheck: false })

/** viaQueueingIoredis connects by ioredis, and queues commands until it is connected. */
export const viaQueueingIoredis = ioredis({})

/** viaNodeRedis connects by node-redis. */
export const viaNodeRedis = nodeRedis(true)

/** viaQueueingNodeRedis connects by node-redis, and queues commands until it is connected. */
export const viaQueueingNodeRedis = nodeRedis(false)

function ioredis(options: RedisOptions): Connect {
  return (port, told) => {
    const client = new Redis({ port, host: HOST, retryStrategy: () => RECONNECT_MS, ...options })
    client.on('error', () => {})
    return {
      name: 'ioredis',
      client: { call: (command, args) => telling(client.call(command, args), told) },
      onReady: (listener) => void client.on('ready', listener),
      close: () => client.disconnect(),
    }
  }
}

function nodeRedis(disableOfflineQueue: boolean): Connect {
  return (port, told) => {
    const client = createClient({
      socket: { host: HOST, port, reconnectStrategy: RECONNECT_MS },
      disableOfflineQueue,
      commandsQueueMaxLength: 1_000,
    })
    client.on('error', () => {})
    client.connect().catch(() => {})
    const sendCommand = (words: readonly string[]) => telling(client.sendCommand(words), told)
    return {
      name: 'node-redis',
      client: { sendCommand },
      onReady: (listener) => void client.on('ready', listener),
      close: () => client.destroy(),
    }
  }
}

async function telling<T>(reply: Promise<T>, told: (error: Error) => void): Promise<T> {
  try {
    return await reply
  } catch (error) {
    told(error as Error)
    throw error
  }
}
