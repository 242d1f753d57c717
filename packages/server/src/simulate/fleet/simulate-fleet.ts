import {
  type AsyncLimiterOptions,
  createLimiter,
  type Decision,
  parseRule,
  type Rule,
} from 'sluice'
import { type RedisStoreOptions, redisStore } from 'sluice/redis'
import { type RedisStandIn, redisStandIn } from 'sluice/testing'
import { createRandom } from '../scenario/random.ts'
import { failOver } from './fail-over.ts'
import type { FleetSetup } from './fleet-setup.ts'
import { type FleetKey, type Judgement, judge, type Sources } from './judge.ts'
import { createLink, type Link, type Outage } from './link.ts'
import { startLoad } from './load.ts'
import type { VirtualTime } from './virtual-time.ts'

/** FleetReport is the result of a run. */
export interface FleetReport extends Judgement {
  readonly setup: FleetSetup
  readonly offered: number
  /** Commands sent to Redis per decision. */
  readonly tripsPerDecision: number
  /** The mean time of a decision. */
  readonly meanMs: number
  readonly sources: Sources
}

/** Broken are options that a test replaces in the nodes, unknown to the checks. */
export interface Broken {
  readonly store?: RedisStoreOptions
  readonly limiter?: Partial<AsyncLimiterOptions>
  readonly link?: (link: Link) => Link
}

/** simulateFleet runs a fleet of the library's own limiters on virtual time. */
export async function simulateFleet(
  setup: FleetSetup,
  time: VirtualTime,
  broken: Broken = {},
): Promise<FleetReport> {
  time.restart()
  const rule = parseRule(setup.rule)
  const server = redisStandIn(time.epochUs)
  const nodes = createNodes(setup, rule, time, server, broken)
  const ideal = createLimiter(rule, { clock: { nowUs: time.epochUs, sleep: async () => {} } })
  const keys = Array.from({ length: setup.keys }, (_, i): FleetKey => {
    return { name: `key ${i}`, instants: [], ideal: 0, lost: 0 }
  })
  const sources: Sources = {}
  let offered = 0
  let answered = 0
  let waitedUs = 0

  function decided({ allowed, source }: Decision, key: FleetKey, link: Link, askedUs: number) {
    answered += 1
    waitedUs += time.nowUs() - askedUs
    sources[source] = (sources[source] ?? 0) + 1
    if (allowed) key.instants.push(source === 'store' ? link.servedUs() : time.nowUs())
  }

  if (setup.failover) failOver(setup.failover, rule, time, server, keys)
  const load = startLoad(setup, time, (k, n) => {
    const key = keys[k]
    const { limiter, link } = nodes[n]
    const askedUs = time.nowUs()
    offered += 1
    // Not `allow`, which refuses what a leaky bucket would delay.
    if (ideal.check(key.name).allowed) key.ideal += 1
    void limiter.check(key.name).then((decision) => decided(decision, key, link, askedUs))
  })
  await time.run(() => load.isOver() && answered === offered)
  return {
    setup,
    offered,
    ...judge(setup, rule, keys, sources),
    tripsPerDecision: nodes.reduce((sum, { link }) => sum + link.trips(), 0) / offered,
    meanMs: waitedUs / offered / 1_000,
    sources,
  }
}

function createNodes(
  setup: FleetSetup,
  rule: Rule,
  time: VirtualTime,
  server: RedisStandIn,
  broken: Broken,
) {
  const { lease, denyCache, delayMs, jitterMs, timeoutMs, onStoreFailure, fleetSize } = setup
  const random = createRandom(setup.seed + 2)
  return Array.from({ length: setup.nodes }, (_, n) => {
    const outages = outagesOf(setup).filter((outage) => n < outage.nodes)
    const link = createLink({ time, server, random, delayMs, jitterMs, outages })
    const store = redisStore(broken.link?.(link) ?? link, { lease, denyCache, ...broken.store })
    const options = { store, timeoutMs, onStoreFailure, fleetSize, ...broken.limiter }
    return { link, limiter: createLimiter(rule, options) }
  })
}

/** A failover is an outage for all nodes. */
function outagesOf({ outages, failover, nodes }: FleetSetup): readonly Outage[] {
  if (!failover) return outages
  const { atMs, downMs } = failover
  return [...outages, { fromMs: atMs, toMs: atMs + downMs, nodes }]
}
