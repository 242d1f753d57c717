import { SluiceError, shown } from '../../core/errors.ts'

/** Send sends one command. In a Cluster, the name of the row selects the node. */
export type Send = (name: string, command: string, args: string[]) => Promise<unknown>

/** Connection is the common interface to all supported clients. */
export interface Connection {
  readonly send: Send
  /** Whether a script can only use names of one slot, as in a Cluster. */
  readonly hasSlots: boolean
  /** Returns a sender to each master, for commands without a key. */
  masters(): Promise<Send[]>
}

/** ioredis, and its Cluster, which has `nodes`. */
interface IoRedis {
  call(command: string, args: string[]): Promise<unknown>
  readonly options?: { readonly keyPrefix?: string }
}
interface IoRedisCluster extends IoRedis {
  nodes(role: string): IoRedis[]
}

/** node-redis: a client, a Cluster and a Sentinel client, whose `sendCommand` signatures differ. */
interface NodeRedis {
  sendCommand(command: string[]): Promise<unknown>
}
interface NodeRedisCluster {
  sendCommand(key: string, isReadonly: boolean, command: string[]): Promise<unknown>
  readonly masters: readonly unknown[]
  nodeClient(master: unknown): NodeRedis | Promise<NodeRedis>
}
interface NodeRedisSentinel {
  sendCommand(isReadonly: boolean, command: string[]): Promise<unknown>
  getSentinelNode(): unknown
}

/** valkey-glide, and its cluster client, whose `customCommand` takes a route. */
interface Glide {
  customCommand(command: string[], options?: unknown): Promise<unknown>
}

/** @upstash/redis, which sends each command as an HTTP request. */
interface Upstash {
  exec(command: [string, ...string[]]): Promise<unknown>
  evalsha(sha: string, keys: string[], args: string[]): Promise<unknown>
}

/**
 * RedisClient is a client of ioredis, node-redis, valkey-glide or @upstash/redis, recognised by its
 * functions.
 */
export type RedisClient =
  | IoRedis
  | NodeRedis
  | NodeRedisCluster
  | NodeRedisSentinel
  | Glide
  | Upstash

/** connectionOf recognizes a client and wraps it. Throws `SLUICE_OPTION` for anything else. */
export function connectionOf(client: RedisClient): Connection {
  if (has(client, 'customCommand')) return glide(client as Glide)
  if (has(client, 'call')) {
    return has(client, 'nodes')
      ? ioRedisCluster(client as IoRedisCluster)
      : ioRedis(client as IoRedis)
  }
  if (has(client, 'sendCommand')) {
    if (has(client, 'nodeClient')) return nodeRedisCluster(client as NodeRedisCluster)
    if (has(client, 'getSentinelNode')) {
      const sentinel = client as NodeRedisSentinel
      return single((_key, command, args) => sentinel.sendCommand(false, [command, ...args]))
    }
    return single(nodeRedisSend(client as NodeRedis))
  }
  // What node-redis calls evalSha.
  if (has(client, 'exec') && has(client, 'evalsha')) return single(upstashSend(client as Upstash))
  throw new SluiceError(
    'SLUICE_OPTION',
    'redisStore: the first argument must be a client of ioredis, node-redis, valkey-glide or ' +
      `@upstash/redis, got ${shown(client)}.`,
  )
}

function single(send: Send): Connection {
  return { send, hasSlots: false, masters: async () => [send] }
}

function ioRedis(client: IoRedis): Connection {
  return single(ioRedisSend(client))
}

function ioRedisSend(client: IoRedis): Send {
  if (client.options?.keyPrefix) {
    throw new SluiceError(
      'SLUICE_OPTION',
      'redisStore: the client has a `keyPrefix`, which changes row names, so keys could not be ' +
        'listed. Use a client without it, and the `prefix` of redisStore.',
    )
  }
  return (_key, command, args) => client.call(command, args)
}

function ioRedisCluster(cluster: IoRedisCluster): Connection {
  return {
    send: ioRedisSend(cluster),
    hasSlots: true,
    async masters() {
      // Before the first connection the client knows no node, or only the seed nodes.
      await cluster.call('PING', [])
      return cluster.nodes('master').map(ioRedisSend)
    },
  }
}

function nodeRedisSend(client: NodeRedis): Send {
  return (_key, command, args) => client.sendCommand([command, ...args])
}

function nodeRedisCluster(cluster: NodeRedisCluster): Connection {
  return {
    send: (key, command, args) => cluster.sendCommand(key, false, [command, ...args]),
    hasSlots: true,
    async masters() {
      if (cluster.masters.length === 0) throw new Error('The client is not connected.')
      const clients = await Promise.all(cluster.masters.map((node) => cluster.nodeClient(node)))
      return clients.map(nodeRedisSend)
    },
  }
}

/** Its automatic deserialization changes no row: no row is JSON. */
function upstashSend(client: Upstash): Send {
  return (_key, command, args) => client.exec([command, ...args])
}

function glide(client: Glide): Connection {
  const send: Send = (_key, command, args) => client.customCommand([command, ...args]).catch(named)
  // Only the cluster client has routes.
  if (!has(client, 'fcallWithRoute')) return single(send)
  return {
    send,
    hasSlots: true,
    async masters() {
      const shards = (await client.customCommand(['CLUSTER', 'SLOTS'])) as unknown[][]
      const nodes = new Map(
        shards.map(([, , node]) => [String((node as unknown[])[2]), node as unknown[]]),
      )
      return Array.from(nodes.values(), ([host, port]) => {
        const route = { type: 'routeByAddress', host: String(host), port: Number(port) }
        return (_key: string, command: string, args: string[]) =>
          client.customCommand([command, ...args], { route })
      })
    },
  }
}

/** Maps glide's NoScriptError to the NOSCRIPT reply of Redis. */
function named(error: unknown): never {
  if (!(error instanceof Error && error.message.includes('NoScriptError'))) throw error
  throw new Error('NOSCRIPT', { cause: error })
}

function has(client: unknown, name: string): boolean {
  if (typeof client !== 'object') return false
  return typeof (client as Record<string, unknown> | undefined)?.[name] === 'function'
}
