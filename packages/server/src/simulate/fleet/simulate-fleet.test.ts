import { describe, expect, it } from 'vitest'
import type { FleetSetup } from './fleet-setup.ts'
import type { Link } from './link.ts'
import type { Broken } from './simulate-fleet.ts'
import { installVirtualTime } from './virtual-time.ts'

const time = installVirtualTime()
// The library captures the timers when it is loaded.
const { simulateFleet } = await import('./simulate-fleet.ts')

const usual: FleetSetup = {
  rule: '500/1s burst 100',
  nodes: 10,
  lease: undefined,
  denyCache: false,
  timeoutMs: 50,
  onStoreFailure: 'local',
  fleetSize: 10,
  delayMs: 1,
  jitterMs: 0.5,
  keys: 1,
  perSecond: 750,
  pattern: 'random',
  forMs: 5_000,
  outages: [],
  failover: undefined,
  seed: 1,
}

const run = (setup: Partial<FleetSetup>, broken?: Broken) =>
  simulateFleet({ ...usual, fleetSize: setup.nodes ?? usual.nodes, ...setup }, time, broken)

const held = { bound: { held: true } }
const outage = (nodes: number) => [{ fromMs: 1_000, toMs: 3_000, nodes }]

it('delays requests of a leaky bucket, as one limiter would', async () => {
  const report = await run({ rule: '500/1s queue 20 leaky-bucket' })
  expect(report).toMatchObject({ over: 0, ...held, sources: { store: report.offered } })
  expect(report.admitted).toBeGreaterThan(2_000)
  expect(report.admitted).toBeLessThan(report.offered)
  expect(report.under).toBeLessThan(0.02)
})

describe('a fleet that counts by the hour of the calendar', () => {
  const hour = { perSecond: 1, forMs: 4_500_000, fleetSize: 10, pattern: 'bursts' } as const

  it('admits the limit on each side of a full hour, with leases and without', async () => {
    // Refused until five minutes before it.
    const outages = [{ fromMs: 1_000, toMs: 3_300_000, nodes: 10 }]
    for (const lease of [undefined, { units: 50, leaseMs: 3_000 }]) {
      const rule = '250/hour calendar-window'
      const report = await run({ ...hour, rule, lease, outages, onStoreFailure: 'closed' })
      expect(report).toMatchObject(held)
      expect(report.admitted).toBeGreaterThan(480)
      expect(report.admitted).toBeLessThanOrEqual(500)
    }
  })

  it('admits the limit on each side of a full hour in a zone where that is half past', async () => {
    const outages = [{ fromMs: 1_000, toMs: 1_500_000, nodes: 10 }]
    const rule = '250/hour zone Asia/Kolkata'
    const report = await run({ ...hour, rule, outages, forMs: 2_700_000, onStoreFailure: 'closed' })
    expect(report).toMatchObject(held)
    expect(report.admitted).toBeGreaterThan(480)
    expect(report.admitted).toBeLessThanOrEqual(500)
  })

  it.each([
    ['300/hour', 3_600_000],
    ['1/hour', 3_600_000],
    ['300/hour zone Asia/Kathmandu', 900_000],
    ['1/hour zone Asia/Kathmandu', 900_000],
  ])('stays within its bound at %s, cut off from Redis', async (rule, edgeMs) => {
    const outages = [{ fromMs: edgeMs - 600_000, toMs: edgeMs + 800_000, nodes: 10 }]
    const report = await run({ ...hour, rule, outages })
    expect(report).toMatchObject(held)
    expect(report.over).toBeGreaterThan(0)
    expect(report.sources.local).toBeGreaterThan(1_000)
  })
})

describe.each([1, 10, 100])('a fleet of %i', (nodes) => {
  it.each(['500/1s burst 100', '250/500ms fixed-window', '500/1s sliding-window-counter'])(
    'admits by %s what one limiter would, and never more',
    async (rule) => {
      const report = await run({ rule, nodes })
      expect(report).toMatchObject({ over: 0, ...held, sources: { store: report.offered } })
      expect(report.under).toBeLessThan(0.02)
    },
  )

  it.each(['500/1s', '500/1s burst 2000 gcra', '250/500ms fixed-window'])(
    'with leases of %s admits in t what the rule admits in t + leaseMs',
    async (rule) => {
      const shared = { rule, nodes, pattern: 'bursts', perSecond: 400 } as const
      for (const [units, leaseMs] of [
        [5, 1_000],
        [5_000, 200],
        [5_000, 3_000],
      ]) {
        const report = await run({ ...shared, lease: { units, leaseMs } })
        expect(report).toMatchObject(held)
        expect(report.sources.lease).toBeGreaterThan(50)
      }
    },
  )

  it('that caches refusals never admits more', async () => {
    const report = await run({ nodes, denyCache: true, rule: '20/1s burst 5', perSecond: 800 })
    expect(report).toMatchObject({ over: 0, ...held })
    expect(report.sources.cache).toBeGreaterThan(0.1 * report.offered)
    expect(report.under).toBeLessThan(0.1)
  })

  it('without Redis admits at most what the rule admits once more', async () => {
    const report = await run({ nodes, outages: outage(nodes) })
    expect(report).toMatchObject({ bound: { text: '2 A(t)', held: true } })
    expect(report.sources.local).toBeGreaterThan(500)
    expect(report.over).toBeGreaterThan(0)
  })

  it('with a wrong fleetSize admits as many times more', async () => {
    const report = await run({ nodes, fleetSize: 1, outages: outage(nodes), perSecond: 2_000 })
    expect(report).toMatchObject({ bound: { text: `${1 + nodes} A(t)`, held: true } })
    expect(report.over).toBeGreaterThan(0.8 * Math.min(1_500, 100 * nodes))
  })

  it('regains after a failover what was not replicated, once', async () => {
    const failover = { atMs: 2_000, lostMs: 150, downMs: 0 }
    const report = await run({ nodes, failover })
    expect(report).toMatchObject({ bound: { held: true } })
    expect(report.bound?.text).toMatch(/^A\(t\) \+ \d+ lost$/)
    expect(report.over).toBeGreaterThan(10)
    expect(report.over).toBeLessThanOrEqual(100)
  })

  it('keeps to its bound with all faults at once', async () => {
    const report = await run({
      nodes,
      lease: { units: 20, leaseMs: 500 },
      denyCache: true,
      outages: [...outage(Math.ceil(nodes / 2)), { fromMs: 3_500, toMs: 3_600, nodes }],
      failover: { atMs: 4_000, lostMs: 10_000, downMs: 300 },
      jitterMs: 10,
      rule: '200/1s fixed-window',
      perSecond: 400,
    })
    expect(report).toMatchObject(held)
    expect(Object.keys(report.sources).sort()).toEqual(['cache', 'lease', 'local', 'store'])
  })
})

it('cuts off the configured nodes, and no others', async () => {
  const report = await run({ outages: outage(3) })
  expect(report).toMatchObject(held)
  const lost = (report.sources.local ?? 0) / (0.4 * report.offered)
  expect(lost).toBeGreaterThan(0.25)
  expect(lost).toBeLessThan(0.35)
})

it('larger than the capacity admits one for each node at once', async () => {
  const rule = '500/1s burst 20'
  const report = await run({ nodes: 100, rule, outages: outage(100), perSecond: 5_000 })
  expect(report).toMatchObject({ bound: { text: '2 A(t) + 80 (one for each node)', held: true } })
  // More than the burst of Redis and that of all shares together.
  expect(report.over).toBeGreaterThan(20 + 20)
})

it('that fails open has no bound, and one that fails closed admits nothing more', async () => {
  const open = await run({ onStoreFailure: 'open', outages: outage(10) })
  expect(open.bound).toBeUndefined()
  expect(open.over).toBeGreaterThan(300)
  const closed = await run({ onStoreFailure: 'closed', outages: outage(10) })
  expect(closed).toMatchObject({ over: 0, ...held })
  expect(closed.under).toBeGreaterThan(0.3)
})

it.each([5, 10, 15, 20])('works with a Redis at a one-way latency of %i ms', async (delayMs) => {
  const { sources, offered } = await run({ nodes: 1, delayMs, perSecond: 800, forMs: 10_000 })
  // Redis loads the script within the first trips.
  expect(sources.store).toBeGreaterThan(0.95 * offered)
})

it('gives the same report for the same seed, and another for another seed', async () => {
  const setup = { lease: { units: 20, leaseMs: 500 }, outages: outage(10) }
  const [one, same, other] = [await run(setup), await run(setup), await run({ ...setup, seed: 2 })]
  expect(same).toEqual(one)
  expect(other.offered).not.toBe(one.offered)
})

describe('the checker notices', () => {
  const busy = { pattern: 'bursts', perSecond: 1_000, rule: '500/1s' } as const
  const broke = { bound: { held: false } }

  /** A link that changes commands on their way. */
  const changing =
    (change: (word: string) => string) =>
    (link: Link): Link => ({
      ...link,
      call: (command, args) =>
        link.call(command, [...args.slice(0, 3), ...args.slice(3).map(change)]),
    })

  it('a lease that Redis does not debit', async () => {
    const link = changing((word) => word.replace(/l(\d+)x\d+/g, 'l$1x0'))
    const lease = { units: 50, leaseMs: 100 }
    expect(await run({ ...busy, lease }, { link })).toMatchObject(broke)
    expect(await run({ ...busy, lease })).toMatchObject(held)
  })

  it('units that are returned twice', async () => {
    const link = changing((word) => word.replace(/r(\d+)x(\d+)/g, 'r$1x$2r$1x$2'))
    const lease = { units: 500, leaseMs: 50 }
    expect(await run({ ...busy, lease }, { link })).toMatchObject(broke)
  })

  it('a lease that is held too long', async () => {
    const lease = { units: 5_000, leaseMs: 400 }
    const broken = { store: { lease: { units: 5_000, leaseMs: 2_000 } } }
    const setup = { rule: '1000/1s burst 500', pattern: 'bursts', forMs: 10_000, lease } as const
    const quick = { delayMs: 0.2, jitterMs: 0.1, perSecond: 1_000 }
    expect(await run({ ...setup, ...quick }, broken)).toMatchObject(broke)
    expect(await run({ ...setup, ...quick })).toMatchObject(held)
  })

  it('a fallback that ignores fleetSize', async () => {
    const setup = { outages: outage(10), perSecond: 2_000 }
    const broken = { limiter: { fleetSize: 1 } }
    expect(await run(setup, broken)).toMatchObject(broke)
  })
})
