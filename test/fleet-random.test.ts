import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { FleetSetup } from '../packages/server/src/simulate/fleet/fleet-setup.ts'
import { installVirtualTime } from '../packages/server/src/simulate/fleet/virtual-time.ts'

const time = installVirtualTime()
// The library captures the timers when it is loaded, so import it after faking them.
const { simulateFleet } = await import('../packages/server/src/simulate/fleet/simulate-fleet.ts')

const rules = [
  { rule: '1000/1s', perSecond: 1_000 },
  { rule: '100/1s burst 10', perSecond: 100 },
  { rule: '500/1s burst 2000 gcra', perSecond: 500 },
  { rule: '7/1s burst 3', perSecond: 7 },
  { rule: '100/500ms fixed-window', perSecond: 200 },
  { rule: '29/1s fixed-window align clock', perSecond: 29 },
]

const outage = fc.record({
  fromMs: fc.integer({ min: 500, max: 4_000 }),
  forMs: fc.constantFrom(50, 300, 2_000),
  part: fc.constantFrom(0.3, 1),
})

const failover = fc.record({
  atMs: fc.integer({ min: 1_000, max: 4_000 }),
  lostMs: fc.constantFrom(0, 50, 500, 10_000),
  downMs: fc.constantFrom(0, 10, 500, 2_000),
})

const setups = fc
  .record({
    of: fc.constantFrom(...rules),
    load: fc.constantFrom(0.5, 0.9, 1.5, 3, 8),
    nodes: fc.constantFrom(1, 2, 7, 30, 100),
    told: fc.constantFrom(1, 1, 1, 0.5, 0),
    lease: fc.option(
      fc.record({
        units: fc.constantFrom(1, 5, 50, 5_000),
        leaseMs: fc.constantFrom(10, 100, 1_000, 3_000),
      }),
      { nil: undefined },
    ),
    denyCache: fc.boolean(),
    onStoreFailure: fc.constantFrom('local' as const, 'local' as const, 'closed' as const),
    delayMs: fc.constantFrom(0, 0.2, 1, 5, 15),
    jitterMs: fc.constantFrom(0, 0.5, 5, 30),
    keys: fc.constantFrom(1, 1, 3),
    pattern: fc.constantFrom('random' as const, 'bursts' as const),
    outages: fc.array(outage, { maxLength: 6 }),
    failover: fc.option(failover, { nil: undefined, freq: 1 }),
    seed: fc.nat(),
  })
  .map(({ of, load, told, outages, ...rest }): FleetSetup => {
    const fleetSize = Math.max(1, Math.floor(told * rest.nodes))
    const cut = outages.map(({ fromMs, forMs, part }) => {
      return { fromMs, toMs: fromMs + forMs, nodes: Math.ceil(part * rest.nodes) }
    })
    const perSecond = load * of.perSecond
    return { ...rest, ...of, perSecond, fleetSize, outages: cut, timeoutMs: 50, forMs: 6_000 }
  })

it('no fleet exceeds its bound under random faults', async () => {
  const seen = new Set<string>()
  let over = 0
  const property = fc.asyncProperty(setups, async (setup) => {
    const { bound, sources, over: more } = await simulateFleet(setup, time)
    expect(bound).toMatchObject({ held: true })
    for (const source of Object.keys(sources)) seen.add(source)
    if (more > 0) over += 1
  })
  await fc.assert(property, { numRuns: 100, seed: 1 })
  // The setups prove something only if some fleets exceed the rule itself.
  expect(over).toBeGreaterThan(30)
  expect([...seen].sort()).toEqual(['cache', 'closed', 'lease', 'local', 'store'])
}, 120_000)
