import { expect, it } from 'vitest'
import { readFleetOptions } from '../../cli/fleet-options.ts'
import { fleetText } from './fleet-text.ts'
import type { FleetReport } from './simulate-fleet.ts'

const [without, withLease] = readFleetOptions(['--lease', '0,50', '--keys', '3'])?.setups ?? []

const report: FleetReport = {
  setup: without,
  offered: 1_000,
  admitted: 990,
  ideal: 1_000,
  over: 0,
  under: 0.01,
  bound: { text: 'A(t)', spare: 4, held: true },
  tripsPerDecision: 1,
  meanMs: 2.5,
  sources: { store: 1_000 },
}

it('shows what a lease saves, if there is a fleet without one to compare with', () => {
  const leased = { ...report, setup: withLease, tripsPerDecision: 0.25, under: 0, over: 6.2 }
  const text = fleetText([report, leased])
  expect(text).toContain('10 nodes, no lease: 1.00 trips for each decision, 1 % refused too early')
  expect(text).toContain(
    'a lease of 50: 75 % of the trips saved, nothing refused too early, up to 7',
  )
  expect(fleetText([leased])).toContain('a lease of 50: 0.25 trips for each decision')
  expect(text).toMatch(/^1000\/1s, 1,000 requests per second for each of 3 keys, 30 s, seed 1\n/)
})

it('does not hide a bound that did not hold, or that there is none', () => {
  const broken = fleetText([{ ...report, bound: { text: 'A(t)', spare: -2.5, held: false } }])
  expect(broken).toContain('A(t)    NO\n')
  expect(broken).toContain('THE BOUND A(t) DID NOT HOLD, by 3.')
  expect(fleetText([{ ...report, bound: undefined }])).toContain('none     -\n')
})
