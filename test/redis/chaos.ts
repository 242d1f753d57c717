import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { FailureOptions } from 'sluice'
import type { Connect } from './clients.ts'
import {
  CAPACITY,
  createNode,
  type FleetNode,
  fleet,
  type NodeRecord,
  PER_SECOND,
  type RunOptions,
  startCalls,
  TIMEOUT_MS,
} from './fleet.ts'
import { startLagMeter } from './load.ts'
import { connectTo } from './nodes.ts'
import { type FaultyProxy, startProxy } from './proxy.ts'
import { createRedis, type RedisServer } from './server.ts'
import { until } from './until.ts'

const BEFORE_MS = 400
const FAULT_MS = 700
const AFTER_MS = 450

/** Scene is what a fault can act on. */
export interface Scene {
  readonly server: RedisServer
  /** A separate connection to the server that bypasses the proxy. */
  readonly admin: Redis
  readonly proxy: FaultyProxy
}

/** Fault is a temporary failure of Redis or of the network between it and its clients. */
export interface Fault {
  readonly name: string
  /** An error of a client or a limiter that shows the fault. */
  readonly shows: RegExp
  /** Options with which the server starts. */
  readonly options?: readonly string[]
  /** Whether the load starts before the server. */
  readonly atBoot?: boolean
  /** Whether the server loses its data. */
  readonly losesData?: boolean
  /** Whether clients connect through the proxy. */
  readonly proxied?: boolean
  /** The clients of the fleet. Default: one of each library. */
  readonly clients?: readonly Connect[]
  begin(scene: Scene): unknown
  end(scene: Scene): unknown
}

/** Run is the record of a load through a fault. Moments are those of `performance.now()`. */
export interface Run {
  readonly fault: Fault
  readonly policy: Policy
  readonly timeoutMs: number
  readonly capacity: number
  readonly perSecond: number
  readonly nodes: readonly NodeRecord[]
  /** The errors of clients and limiters. */
  readonly errors: readonly string[]
  readonly startMs: number
  readonly beganMs: number
  readonly endedMs: number
  readonly stopMs: number
  /** The longest lag of the event loop. */
  readonly lagMs: number
}

export type Policy = NonNullable<FailureOptions['onStoreFailure']>

/** runFault puts a fleet under steady load, starts and ends a fault, and records all calls. */
export async function runFault(fault: Fault, options: RunOptions = {}): Promise<Run> {
  const server = await createRedis(...(fault.options ?? []))
  const admin = connectTo(server.port)
  const proxy = await startProxy(server.port)
  const errors = new Set<string>()
  const told = (error: Error) => void errors.add(error.message)
  const port = fault.proxied ? proxy.port : server.port
  const clients = (fault.clients ?? fleet).map((connect) => connect(port, told))
  const nodes = clients.map((client) => createNode(client, told, options))
  try {
    const moments = await play(fault, { server, admin, proxy }, nodes)
    return {
      fault,
      policy: options.onStoreFailure ?? 'local',
      timeoutMs: TIMEOUT_MS,
      capacity: CAPACITY,
      perSecond: PER_SECOND,
      nodes: nodes.map(({ record }) => record),
      errors: [...errors],
      ...moments,
    }
  } finally {
    for (const { close } of clients) close()
    admin.disconnect()
    await proxy.close()
    await server.stop()
  }
}

/** Runs a fault on a fleet, and returns its moments. */
async function play(fault: Fault, scene: Scene, nodes: readonly FleetNode[]) {
  const areReady = () => nodes.every(({ record }) => record.readyMs.length > 0)
  if (!fault.atBoot) {
    await scene.server.start()
    await until(areReady, 'all clients are connected')
  }
  const lag = startLagMeter()
  const load = startCalls(nodes)
  const startMs = performance.now()
  try {
    if (!fault.atBoot) await sleep(BEFORE_MS)
    const beganMs = performance.now()
    await fault.begin(scene)
    await sleep(FAULT_MS)
    await fault.end(scene)
    const endedMs = performance.now()
    await sleep(AFTER_MS + lag.longestMs())
    const stopMs = performance.now()
    await load.stop()
    return { startMs, beganMs, endedMs, stopMs, lagMs: lag.longestMs() }
  } finally {
    await load.stop()
    lag.stop()
  }
}
