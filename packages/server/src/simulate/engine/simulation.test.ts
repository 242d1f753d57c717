import fc from 'fast-check'
import { createLimiter, memoryStore, type SluiceError } from 'sluice'
import { manualClock } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { type LogRequest, requestOf } from '../log/request.ts'
import { createProposal, NEVER, type Proposal, parseProposal } from './proposal.ts'
import { createSimulation } from './simulation.ts'
import { createVirtualClock } from './virtual-clock.ts'

const START_US = 1_780_000_000_000_000

const RULES = [
  '7/1s burst 3 token-bucket',
  '7/1s burst 3 gcra',
  '7/1s queue 3 leaky-bucket',
  '5/1s fixed-window',
  '5/1s fixed-window align clock',
  '5/1s sliding-window-counter',
  '5/1s sliding-window-log',
  '3/100ms burst 4, 9/2s sliding-window-log, 11/2s fixed-window',
]

const step = fc.record({
  key: fc.constantFrom('a', 'b', '__proto__'),
  cost: fc.constantFrom(0, 1, 1, 1, 2, 3, 9),
  afterUs: fc.oneof(
    fc.constantFrom(0, 1, 142_857, 142_858, 999_999, 1_000_000),
    fc.integer({ min: 0, max: 400_000 }),
    // A late line: the clock does not step back.
    fc.integer({ min: -300_000, max: 0 }),
  ),
})
const stream = fc.array(step, { minLength: 1, maxLength: 80, size: 'max' })

type Step = { key: string; cost: number; afterUs: number }

function requestsOf(steps: readonly Step[]): LogRequest[] {
  let timeUs = START_US
  return steps.map(({ key, cost, afterUs }) => {
    timeUs += afterUs
    return requestOf(timeUs, key, cost) as LogRequest
  })
}

/** Plays requests to the simulator, with the clock changed by `bend`, and records every verdict. */
function simulated(text: string, requests: readonly LogRequest[], bend = (us: number) => us) {
  const clock = createVirtualClock()
  const inner = createProposal(text, parseProposal(text), { clock, maxKeys: 1_000 })
  const answers: unknown[] = []
  const set: Proposal = {
    ...inner,
    decide(request) {
      const { allowed, retryAfterMs, delayMs, rule } = inner.decide(request)
      answers.push(allowed ? { allowed, delayMs } : { allowed, retryAfterMs, rule })
      return { allowed, retryAfterMs, delayMs, rule }
    },
  }
  const simulation = createSimulation({ clock, proposals: [set], maxClients: 1_000, top: 10 })
  for (const request of requests) {
    simulation.take({ ...request, timeUs: bend(request.timeUs) })
  }
  return { answers, report: simulation.report() }
}

/** The production limiter, called request by request, on the clock of the tests. */
function direct(text: string, requests: readonly LogRequest[]): unknown[] {
  const clock = manualClock(requests[0].timeUs)
  const limiter = createLimiter(parseProposal(text), { store: memoryStore({ clock }) })
  return requests.map(({ key, cost, timeUs }) => {
    if (timeUs > clock.nowUs()) clock.advance((timeUs - clock.nowUs()) / 1_000)
    try {
      const { allowed, retryAfterMs, delayMs, rule } = limiter.check(key, cost)
      return allowed ? { allowed, delayMs } : { allowed, retryAfterMs, rule }
    } catch (error) {
      expect((error as SluiceError).code).toBe('SLUICE_COST_EXCEEDS_CAPACITY')
      return { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, rule: NEVER }
    }
  })
}

describe('a simulation', () => {
  it.each(RULES)('answers as the production limiter does: %s', (text) => {
    const seen = { allowed: 0, refused: 0 }
    fc.assert(
      fc.property(stream, (steps) => {
        const requests = requestsOf(steps)
        const { answers, report } = simulated(text, requests)
        expect(answers).toEqual(direct(text, requests))
        const [set] = report.ruleSets
        expect(set.allowed + set.refused).toBe(requests.length)
        seen.allowed += set.allowed
        seen.refused += set.refused
      }),
      { numRuns: 150 },
    )
    // The streams test something only if both verdicts are common in them.
    expect(Math.min(seen.allowed, seen.refused)).toBeGreaterThan(300)
  })

  it.each(RULES)('differs with a clock of whole seconds: %s', (text) => {
    const seconds = (us: number) => Math.floor(us / 1_000_000) * 1_000_000
    const details = fc.check(
      fc.property(stream, (steps) => {
        const requests = requestsOf(steps)
        expect(simulated(text, requests, seconds).answers).toEqual(direct(text, requests))
      }),
      { numRuns: 150, endOnFailure: true },
    )
    expect(details.failed).toBe(true)
  })

  it('reports sums that agree with each other', () => {
    fc.assert(
      fc.property(stream, (steps) => {
        const clock = createVirtualClock()
        const proposals = RULES.slice(0, 3).map((text) =>
          createProposal(text, parseProposal(text), { clock, maxKeys: 1_000 }),
        )
        const simulation = createSimulation({ clock, proposals, maxClients: 2, top: 10 })
        const requests = requestsOf(steps).map((request) => ({ ...request, tier: request.key }))
        for (const request of requests) simulation.take(request)
        const { traffic, ruleSets: sets } = simulation.report()
        const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0)
        expect(traffic.requests).toBe(requests.length)
        expect(traffic.units).toBe(sum(requests.map(({ cost }) => cost)))
        expect(sum(traffic.timeline.requests)).toBe(traffic.requests)
        for (const set of sets) {
          expect(set.allowed + set.refused).toBe(set.requests)
          expect(set.requests).toBe(traffic.requests)
          expect(set.units).toBe(traffic.units)
          expect(sum(set.timeline)).toBe(set.refused)
          expect(set.timeline).toHaveLength(traffic.timeline.requests.length)
          expect(sum(set.byRule.map(({ refused }) => refused))).toBe(set.refused)
          expect(sum(set.byTier.map(({ requests }) => requests))).toBe(set.requests)
          expect(sum(set.byTier.map(({ refused }) => refused))).toBe(set.refused)
          expect(sum(set.byTier.map(({ clients }) => clients))).toBe(traffic.clients)
          expect(sum(set.byTier.map((tier) => tier.refusedClients))).toBe(set.refusedClients)
          // All tracked clients are listed here; those beyond are counted apart.
          expect(sum(set.top.map(({ refused }) => refused))).toBeLessThanOrEqual(set.refused)
          expect(set.top).toHaveLength(set.refusedClients)
        }
      }),
    )
  })

  it('decides for clients beyond the most it tracks, and counts them apart', () => {
    const steps = ['a', 'b', 'c', 'c'].map((key) => ({ key, cost: 1, afterUs: 0 }))
    const clock = createVirtualClock()
    const proposals = [createProposal('x', parseProposal('1/1s'), { clock, maxKeys: 10 })]
    const simulation = createSimulation({ clock, proposals, maxClients: 2, top: 10 })
    requestsOf(steps).forEach(simulation.take)
    const { traffic, ruleSets: sets } = simulation.report()
    expect(traffic).toMatchObject({ requests: 4, clients: 2, untracked: 2 })
    expect(sets[0]).toMatchObject({ requests: 4, refused: 1, refusedClients: 0, top: [] })
  })

  it('compares with the outcomes in the log', () => {
    const outcomes = ['allowed', 'shadowed', 'refused', 'refused', undefined] as const
    const clock = createVirtualClock()
    const proposals = [createProposal('x', parseProposal('1/1s'), { clock, maxKeys: 10 })]
    const simulation = createSimulation({ clock, proposals, maxClients: 10, top: 10 })
    const keys = ['a', 'a', 'a', 'b', 'b']
    requestsOf(keys.map((key) => ({ key, cost: 1, afterUs: 0 }))).forEach((request, i) => {
      simulation.take({ ...request, outcome: outcomes[i] })
    })
    expect(simulation.report().ruleSets[0].change).toEqual({
      newlyRefused: 1,
      newlyAllowed: 1,
      stillRefused: 1,
      stillAllowed: 1,
      unknown: 1,
    })
  })
})

describe('a rule set', () => {
  it('numbers rules that would have the same name', () =>
    expect(parseProposal('5/1s, 100/1m,1000/1h gcra').map(({ name }) => name)).toEqual([
      'token-bucket',
      'token-bucket-2',
      'gcra',
    ]))

  it('is refused when the user gave one name twice', () => {
    const rules = parseProposal('5/1s name a, 100/1m name a')
    const options = { clock: createVirtualClock(), maxKeys: 10 }
    expect(() => createProposal('x', rules, options)).toThrow(
      expect.objectContaining({ code: 'SLUICE_RULE_DUPLICATE' }),
    )
  })
})
