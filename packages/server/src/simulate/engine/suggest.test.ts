import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type LogRequest, requestOf } from '../log/request.ts'
import { createClients } from './clients.ts'
import { createProposal, parseProposal } from './proposal.ts'
import { createSimulation } from './simulation.ts'
import { sharesOf } from './suggest.ts'
import { clientsOver, createUsage, percentile, unitsOver } from './usage.ts'
import { createVirtualClock } from './virtual-clock.ts'

const START_US = Date.UTC(2026, 0, 1) * 1_000

const stream = fc.array(
  fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), afterUs: fc.nat(3_000_000) }),
  { minLength: 1, maxLength: 300, size: 'max' },
)

type Step = { key: string; afterUs: number }

function requestsOf(steps: readonly Step[]): LogRequest[] {
  let timeUs = START_US
  return steps.map(({ key, afterUs }) => {
    timeUs += afterUs
    return requestOf(timeUs, key) as LogRequest
  })
}

function played(steps: readonly Step[], rules: readonly string[]) {
  const clock = createVirtualClock()
  const proposals = rules.map((text) =>
    createProposal(text, parseProposal(text), { clock, maxKeys: 100 }),
  )
  const simulation = createSimulation({ clock, proposals, maxClients: 100, top: 10 })
  requestsOf(steps).forEach(simulation.take)
  return simulation.report()
}

describe('a suggestion', () => {
  it('counts clients over a limit as the limiter refuses them, in windows of the clock', () => {
    let over = 0
    fc.assert(
      fc.property(stream, fc.integer({ min: 1, max: 12 }), (steps, limit) => {
        const usage = createUsage()
        const clients = createClients(100)
        for (const { key, timeUs } of requestsOf(steps)) {
          usage.count(clients.numberOf(key), 1, timeUs)
        }
        const windows = usage.sum(clients.size())
        const rules = windows.map(({ per }) => `${limit}/${per} fixed-window align clock`)
        const refused = played(steps, rules).ruleSets
        expect(windows.map((window) => clientsOver(window, limit))).toEqual(
          refused.map((set) => set.refusedClients),
        )
        expect(windows.map((window) => unitsOver(window, limit))).toEqual(
          refused.map((set) => set.refused),
        )
        over += refused.filter((set) => set.refused > 0).length
      }),
    )
    // The streams test something only if many are refused.
    expect(over).toBeGreaterThan(50)
  })

  it('leaves a quarter of headroom, and is a round number', () => {
    const steps = Array.from({ length: 82 }, (_, i) => ({
      key: i % 2 ? 'a' : 'b',
      afterUs: 800_000,
    }))
    const { suggestions, usage } = played(steps, [])
    expect(usage.find(({ per }) => per === '1m')?.percentiles).toContainEqual({ share: 1, use: 37 })
    expect(suggestions.filter(({ rule }) => rule.endsWith('/1m'))).toEqual([
      { rule: '50/1m', burst: 3, share: 0.9, use: 37, clientsOver: 0, unitsOver: 0 },
    ])
    // The log is shorter than an hour, so it gives no limit per hour.
    expect(suggestions.filter(({ rule }) => rule.endsWith('/1h'))).toEqual([])
  })
})

it('is given for an hour by a log of just under an hour', () => {
  const perHour = (seconds: number) => {
    const steps = Array.from({ length: 60 }, (_, i) => {
      return { key: 'a', afterUs: i === 0 ? 0 : (seconds * 1_000_000) / 59 }
    })
    return played(steps, []).suggestions.some(({ rule }) => rule.endsWith('/1h'))
  }
  expect([perHour(3_599), perHour(3_000)]).toEqual([true, false])
})

it('has a burst for a minute, three times what is used in a second, the limit at most', () => {
  const burstOf = (atOnce: number, pauseUs: number) => {
    const steps = Array.from({ length: 240 }, (_, i) => ({
      key: 'a',
      afterUs: i % atOnce === 0 ? pauseUs : 0,
    }))
    const { suggestions } = played(steps, [])
    return suggestions.flatMap(({ rule, burst }) => (burst ? [`${rule} burst ${burst}`] : []))
  }
  expect(burstOf(2, 1_000_000)).toEqual(['150/1m burst 6'])
  expect(burstOf(40, 20_000_000)).toEqual(['150/1m burst 120'])
  expect(burstOf(120, 60_000_000)).toEqual(['150/1m burst 150'])
})

it('is not given for a second by a log of half a second', () => {
  const lasting = (afterUs: number) =>
    played(
      [
        { key: 'a', afterUs: 0 },
        { key: 'a', afterUs },
      ],
      [],
    ).suggestions.length
  expect([lasting(500_000), lasting(1_000_000)]).toEqual([0, 1])
})

it('is not given if nothing was used', () => {
  const clock = createVirtualClock()
  const simulation = createSimulation({ clock, proposals: [], maxClients: 9, top: 9 })
  simulation.take(requestOf(START_US, 'a', 0) as LogRequest)
  expect(simulation.report().suggestions).toEqual([])
})

it.each([
  [0, [0.5, 0.9, 1]],
  [99, [0.5, 0.9, 1]],
  [100, [0.5, 0.9, 0.99, 1]],
  [999, [0.5, 0.9, 0.99, 1]],
  [1_000, [0.5, 0.9, 0.99, 0.999, 1]],
])('no percentile of %d clients is the largest use by another name', (clients, shares) =>
  expect(sharesOf(clients)).toEqual(shares),
)

it('use is counted exactly beyond 2^32', () => {
  const usage = createUsage()
  for (let i = 0; i < 500; i += 1) usage.count(0, 10_000_000, START_US)
  expect(usage.sum(1).map(({ largest, uses }) => [largest[0], ...uses])).toEqual(
    Array(3).fill([5e9, [5e9, 1]]),
  )
})

it.each([
  [[], 0.5, 0],
  [[4], 0.5, 4],
  [[1, 2, 3, 4], 0.5, 2],
  [[1, 2, 3, 4], 0.51, 3],
  [[1, 2, 3, 4], 1, 4],
])('the percentile of %j at %d is %d', (values, share, wanted) =>
  expect(percentile(Float64Array.from(values), share)).toBe(wanted),
)
