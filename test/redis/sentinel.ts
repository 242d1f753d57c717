import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../find-program.ts'
import { connectTo, HOST, type RedisNode, replicates, startNode } from './nodes.ts'
import { findServer } from './server.ts'
import { until } from './until.ts'

/** The name of the master in the Sentinel, which stays the same after a failover. */
export const MASTER_NAME = 'limits'

/** Watched is a real master with a replica, and a Sentinel that promotes the replica if needed. */
export interface Watched {
  readonly master: RedisNode
  readonly replica: RedisNode
  readonly sentinelPort: number
  stop(): Promise<void>
}

/** startWatched starts all three, and waits until the Sentinel knows both nodes. */
export async function startWatched(): Promise<Watched> {
  const master = await startNode()
  const replica = await startNode('--replicaof', HOST, String(master.server.port))
  const sentinel = await startSentinel(master.server.port)
  const stop = async () => {
    await Promise.all([sentinel, master, replica].map((each) => each.stop()))
  }
  try {
    await replicates(replica)
    await sentinel.knowsReplica()
  } catch (error) {
    await stop()
    throw error
  }
  return { master, replica, sentinelPort: sentinel.port, stop }
}

/** Starts a Sentinel: the same program, with a configuration file that it writes to. */
async function startSentinel(masterPort: number) {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-sentinel-'))
  const file = join(folder, 'sentinel.conf')
  const lines = [
    `port ${port}`,
    `bind ${HOST}`,
    `dir ${folder}`,
    `sentinel monitor ${MASTER_NAME} ${HOST} ${masterPort} 1`,
    `sentinel down-after-milliseconds ${MASTER_NAME} 500`,
    `sentinel failover-timeout ${MASTER_NAME} 4000`,
  ]
  writeFileSync(file, lines.join('\n'))
  const sentinel = spawn(findServer(), [file, '--sentinel'], { stdio: 'ignore' })
  const ended = new Promise((resolve) => sentinel.once('exit', resolve))
  const admin = connectTo(port)
  return {
    port,
    async knowsReplica() {
      await until(async () => {
        const words = (await admin.call('SENTINEL', 'MASTER', MASTER_NAME)) as string[]
        return words[words.indexOf('num-slaves') + 1] === '1'
      }, 'the Sentinel knows the replica')
    },
    async stop() {
      admin.disconnect()
      sentinel.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
