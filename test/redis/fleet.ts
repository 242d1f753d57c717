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

/** fleet is the nodes of one, each with a client and a limiter of its own. */
export const fleet: readonly Connect[] = [viaIoredis, viaNodeRedis]

/** TIMEOUT_MS is what limiters promise. */
export const TIMEOUT_MS = 50

/** The load of the whole fleet. */
const CALLS_PER_SECOND = 800

/** How long calls that are still under way at the end may take to end. */
const PATIENCE_MS = 2_000

/** CAPACITY is how much the rule admits at once: a load uses it up in no time. */
export const CAPACITY = 20

/** PER_SECOND is how much the rule gives back: little while a fault lasts. */
export const PER_SECOND = 5

const rule = tokenBucket({ limit: PER_SECOND, per: '1s', burst: CAPACITY })

/** Made is one call of the load, and what became of it. */
export interface Made {
  readonly startMs: number
  endMs: number
  source: Source | undefined
  allowed: boolean
  error: unknown
}

/** NodeRecord is what one node of the fleet saw. */
export interface NodeRecord {
  /** Of its client. */
  readonly name: string
  readonly calls: Made[]
  /** When its client was connected. */
  readonly readyMs: number[]
  readonly degradedMs: number[]
  readonly recoveredMs: number[]
}

/** Checker is the verb of a limiter that the load uses. */
export type Checker = Pick<AsyncLimiter, 'check'>

/** RunOptions change the limiters, and nothing of what is expected of them but the policy. */
export interface RunOptions extends FailureOptions {
  /** Puts something else in the limiter's place. */
  readonly wrap?: (limiter: Checker) => Checker
}

/** FleetNode is a limiter under load, and its record. */
export interface FleetNode {
  readonly checker: Checker
  readonly record: NodeRecord
}

/** createNode makes a limiter on a client, and writes down what they say. */
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

/** startCalls starts a load on all nodes in turn; its `stop` waits until all calls have ended. */
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

/** Makes one call and records it; one that never ends has no end. */
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
