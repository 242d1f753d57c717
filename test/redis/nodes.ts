import { Redis } from 'ioredis'
import { type RedisServer, startRedis } from './server.ts'
import { until } from './until.ts'

export const HOST = '127.0.0.1'

/** RedisNode is one server of several, and a plain connection to it. */
export interface RedisNode {
  readonly server: RedisServer
  readonly admin: Redis
  stop(): Promise<void>
}

/** startNode starts a server that sends its data to replicas without a delay. */
export async function startNode(...options: string[]): Promise<RedisNode> {
  const server = await startRedis('--bind', HOST, '--repl-diskless-sync-delay', '0', ...options)
  const admin = connectTo(server.port)
  return {
    server,
    admin,
    async stop() {
      admin.disconnect()
      await server.stop()
    },
  }
}

/** connectTo opens a connection that tolerates the loss of the server. */
export function connectTo(port: number): Redis {
  const admin = new Redis(port, HOST)
  admin.on('error', () => {})
  return admin
}

/** replicates waits until a replica follows its master. */
export async function replicates(replica: RedisNode): Promise<void> {
  const isUp = async () => (await replicationOf(replica)).includes('master_link_status:up')
  await until(isUp, 'the replica follows its master')
}

/** caughtUp waits until a replica has all writes of its master up to now. */
export async function caughtUp(master: RedisNode, replica: RedisNode): Promise<void> {
  const offset = async (node: RedisNode) =>
    /master_repl_offset:(\d+)/.exec(await replicationOf(node))
  const told = Number((await offset(master))?.[1])
  await until(async () => Number((await offset(replica))?.[1]) >= told, 'the replica has caught up')
}

/** isMaster tells whether a node is a master now. */
export async function isMaster(node: RedisNode): Promise<boolean> {
  return (await replicationOf(node)).includes('role:master')
}

function replicationOf({ admin }: RedisNode): Promise<string> {
  return admin.info('replication')
}
