import { SluiceError, shown } from '../../errors.ts'

/** Send sends one command and gives its reply. The key is what decides the node in a Cluster. */
export type Send = (key: string, command: readonly string[]) => Promise<unknown>

interface IoRedis {
  call(command: string, ...rest: string[]): Promise<unknown>
}
interface NodeRedis {
  sendCommand(command: readonly string[]): Promise<unknown>
}

/** RedisClient is an ioredis or node-redis client, recognised by its functions. */
export type RedisClient = IoRedis | NodeRedis

/** senderOf finds out how a client is told to send a command. */
export function senderOf(client: RedisClient): Send {
  if (has(client, 'call')) {
    const { call } = client as IoRedis
    return (_key, [name, ...rest]) => call.call(client, name, ...rest)
  }
  if (has(client, 'sendCommand')) {
    const { sendCommand } = client as NodeRedis
    return (_key, command) => sendCommand.call(client, [...command])
  }
  throw new SluiceError(
    'SLUICE_OPTION',
    `redisStore: the first argument must be a client of ioredis or node-redis, got ${shown(client)}.`,
  )
}

function has(client: unknown, name: string): boolean {
  return typeof (client as Record<string, unknown> | undefined)?.[name] === 'function'
}
