import type { Redis } from 'ioredis'
import { slotOfName } from '../../packages/sluice/src/stores/redis/slots.ts'
import { HOST, type RedisNode, replicates, startNode } from './nodes.ts'
import { until } from './until.ts'

const SLOTS = 16_384

/** After this long without a reply a node counts as lost. */
const NODE_TIMEOUT_MS = 1_200

/** RedisCluster is a real cluster for one test file: masters, and replicas of the first ones. */
export interface RedisCluster {
  readonly masters: readonly RedisNode[]
  readonly replicas: readonly RedisNode[]
  /** The seed nodes for clients. */
  readonly addresses: { host: string; port: number }[]
  /** Returns the first `count` keys whose rows are on a master. */
  keysOf(master: RedisNode, count: number, nameOf: (key: string) => string): string[]
  stop(): Promise<void>
}

/** startCluster starts the servers, and waits until the cluster is healthy. */
export async function startCluster(
  masterCount: number,
  replicaCount: number,
): Promise<RedisCluster> {
  const starting = Array.from({ length: masterCount + replicaCount }, () => startMember())
  const nodes = await Promise.all(starting)
  const masters = nodes.slice(0, masterCount)
  const replicas = nodes.slice(masterCount)
  const stop = async () => void (await Promise.all(nodes.map((node) => node.stop())))
  try {
    await unite(masters, replicas)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    masters,
    replicas,
    addresses: nodes.map(({ server }) => ({ host: HOST, port: server.port })),
    keysOf(master, count, nameOf) {
      const slots = new Set(slotsOf(masters.indexOf(master), masterCount))
      return keysWhere((key) => slots.has(slotOfName(nameOf(key))), count)
    },
    stop,
  }
}

/** Joins nodes to a cluster whose masters have equal parts of the slots. */
async function unite(masters: readonly RedisNode[], replicas: readonly RedisNode[]): Promise<void> {
  const nodes = [...masters, ...replicas]
  for (const [i, { admin }] of nodes.entries()) {
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1))
    await admin.cluster('MEET', HOST, nodes[0].server.port)
  }
  for (const [i, { admin }] of masters.entries()) {
    await admin.cluster('ADDSLOTS', ...slotsOf(i, masters.length))
  }
  const met = ({ admin }: RedisNode) => until(() => knows(admin, nodes.length), 'all have met')
  await Promise.all(nodes.map(met))
  await Promise.all(replicas.map((replica, i) => follow(replica, masters[i])))
}

/** keysWhere returns the first `count` keys that satisfy a condition. */
export function keysWhere(isSo: (key: string) => boolean, count: number): string[] {
  const keys: string[] = []
  for (let i = 0; keys.length < count; i += 1) if (isSo(`key ${i}`)) keys.push(`key ${i}`)
  return keys
}

/** moveSlot migrates a slot and its keys from one master to another, while it is in use. */
export async function moveSlot(
  slot: number,
  from: RedisNode,
  to: RedisNode,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const [fromId, toId] = await Promise.all([idOf(from), idOf(to)])
  await to.admin.cluster('SETSLOT', slot, 'IMPORTING', fromId)
  await from.admin.cluster('SETSLOT', slot, 'MIGRATING', toId)
  await meanwhile()
  const names = (await from.admin.cluster('GETKEYSINSLOT', slot, 1_000)) as string[]
  await from.admin.call('MIGRATE', HOST, to.server.port, '', 0, 5_000, 'KEYS', ...names)
  await to.admin.cluster('SETSLOT', slot, 'NODE', toId)
  await from.admin.cluster('SETSLOT', slot, 'NODE', toId)
}

/** Starts a node. Retries if the port of its cluster bus is in use or too high. */
async function startMember(tries = 10): Promise<RedisNode> {
  try {
    return await startNode(
      ...['--cluster-enabled', 'yes', '--cluster-require-full-coverage', 'no'],
      ...['--cluster-node-timeout', String(NODE_TIMEOUT_MS)],
    )
  } catch (error) {
    if (tries === 1) throw error
    return startMember(tries - 1)
  }
}

/** Returns the slots of one of several masters. */
function slotsOf(i: number, of: number): number[] {
  const [from, to] = [i, i + 1].map((part) => Math.floor((part * SLOTS) / of))
  return Array.from({ length: to - from }, (_, slot) => from + slot)
}

/** Tells whether a node knows `count` nodes and considers the cluster healthy. */
async function knows(admin: Redis, count: number): Promise<boolean> {
  const info = String(await admin.cluster('INFO'))
  return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${count}`)
}

async function follow(replica: RedisNode, master: RedisNode): Promise<void> {
  await replica.admin.cluster('REPLICATE', await idOf(master))
  await replicates(replica)
}

async function idOf({ admin }: RedisNode): Promise<string> {
  return String(await admin.cluster('MYID'))
}
