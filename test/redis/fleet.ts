import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AsyncLimiter,
  createLimiter,
  type FailureOptions,
  type Source,
  tokenBucket,
} from 'sluice'
import { redisStore } from 'sluice/redis'
import { type Connect, type Connected, viaIoredis, viaNodeRedis } from './clients.ts'
import { startLoad } from './load.ts'

/** fleet lists the nodes of a fleet, each with its own client and limiter. */
export const fleet: readonly Connect[] = [viaIoredis, viaNodeRedis]

/** TIMEOUT_MS is the timeout of all limiters. */
export const TIMEOUT_MS = 50

/** The load of the whole fleet. */
const CALLS_PER_SECOND = 800

/** How long calls in flight at the end may take. */
const PATIENCE_MS = 2_000

/** CAPACITY is the rule's capacity, which the load uses up at once. */
export const CAPACITY = 20

/** PER_SECOND is the rule's refill rate: only a few units during a fault. */
export const PER_SECOND = 5

const rule = tokenBucket({ limit: PER_SECOND, per: '1s', burst: CAPACITY })

/** Made is one call of the load, and its result. */
export interface Made {
  readonly startMs: number
  endMs: number
  source: Source | undefined
  allowed: boolean
  error: unknown
}

/** NodeRecord is what one node of the fleet saw. */
export interface NodeRecord {
  /** The name of its client. */
  readonly name: string
  readonly calls: Made[]
  /** When its client was connected. */
  readonly readyMs: number[]
  readonly degradedMs: number[]
  readonly recoveredMs: number[]
}

/** Checker is the verb of a limiter that the load uses. */
export type Checker = Pick<AsyncLimiter, 'check'>

/** RunOptions change the limiters. Expectations change only with the policy. */
export interface RunOptions extends FailureOptions {
  /** Replaces the limiter. */
  readonly wrap?: (limiter: Checker) => Checker
}

/** FleetNode is a limiter under load, and its record. */
export interface FleetNode {
  readonly checker: Checker
  readonly record: NodeRecord
}

/** createNode creates a limiter on a client, and records their events. */
export function createNode(
  { name, client, onReady }: Connected,
  told: (error: Error) => void,
  { wrap = (limiter) => limiter, ...options }: RunOptions,
): FleetNode {
  const record: NodeRecord = { name, calls: [], readyMs: [], degradedMs: [], recoveredMs: [] }
  onReady(() => void record.readyMs.push(performance.now()))
  const limiter = createLimiter(rule, {
    store: redisStore(client),
    timeoutMs: TIMEOUT_MS,
    fleetSize: fleet.length,
    onDegraded(error) {
      told(error)
      record.degradedMs.push(performance.now())
    },
    onRecovered: () => void record.recoveredMs.push(performance.now()),
    ...options,
  })
  return { checker: wrap(limiter), record }
}

/** startCalls starts a load on all nodes in turn. `stop` waits until all calls have ended. */
export function startCalls(nodes: readonly FleetNode[]) {
  const underWay = new Set<Promise<void>>()
  let turn = 0
  const stop = startLoad(CALLS_PER_SECOND, () => {
    const { checker, record } = nodes[turn % nodes.length]
    turn += 1
    const call = make(checker, record)
    underWay.add(call)
    void call.then(() => underWay.delete(call))
  })
  return {
    async stop() {
      stop()
      await Promise.race([Promise.all(underWay), sleep(PATIENCE_MS)])
    },
  }
}

/** Makes one call and records it. A call that never ends has no end in the record. */
async function make(checker: Checker, { calls }: NodeRecord): Promise<void> {
  const call: Made = {
    startMs: performance.now(),
    endMs: Number.POSITIVE_INFINITY,
    source: undefined,
    allowed: false,
    error: undefined,
  }
  calls.push(call)
  try {
    const { source, allowed } = await checker.check('alice')
    call.source = source
    call.allowed = allowed
  } catch (error) {
    call.error = error
  }
  call.endMs = performance.now()
}
