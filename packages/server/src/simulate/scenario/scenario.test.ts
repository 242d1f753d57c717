import { describe, expect, it } from 'vitest'
import { createProposal, parseProposal } from '../engine/proposal.ts'
import { simulateScenario } from '../engine/run.ts'
import { createScenario, SCENARIOS, type ScenarioName } from './scenario.ts'

const names = Object.keys(SCENARIOS) as ScenarioName[]
const options = { clients: 50, ratePerSecond: 40, forMs: 120_000, seed: 7 }

function all(scenario: ScenarioName, more = {}) {
  const { next } = createScenario({ ...options, scenario, ...more })
  const requests = []
  for (let request = next(); request; request = next()) requests.push(request)
  return requests
}

function report(scenario: ScenarioName, rules: readonly string[]) {
  return simulateScenario({
    scenario: { ...options, scenario },
    proposals: (clock, maxKeys) =>
      rules.map((text) => createProposal(text, parseProposal(text), { clock, maxKeys })),
    maxClients: 10_000,
    top: 10,
  })
}

describe.each(names)('the scenario %s', (scenario) => {
  it('is the same for the same seed, and another for another', () => {
    expect(all(scenario)).toEqual(all(scenario))
    if (scenario !== 'steady') expect(all(scenario, { seed: 8 })).not.toEqual(all(scenario))
    expect(report(scenario, ['5/1s', '30/1m'])).toEqual(report(scenario, ['5/1s', '30/1m']))
  })

  it('is in order, within its time, of about its rate and of its clients', () => {
    const requests = all(scenario)
    const times = requests.map(({ timeUs }) => timeUs)
    expect(times).toEqual([...times].sort((a, b) => a - b))
    expect(times[times.length - 1] - times[0]).toBeLessThan(120_000_000)
    const surge = scenario === 'retry-storm' ? 1.4 : 1
    expect(requests.length / (40 * 120 * surge)).toBeGreaterThan(0.75)
    expect(requests.length / (40 * 120 * surge)).toBeLessThan(1.25)
    const clients = new Set(requests.map(({ key }) => key).filter((key) => key[0] === 'c'))
    expect(clients.size).toBeLessThanOrEqual(50)
    expect(clients.size).toBeGreaterThan(40)
  })
})

it('steady clients send at even intervals, which a rule of their rate admits', () =>
  expect(report('steady', ['48/1m burst 1']).ruleSets[0].refused).toBe(0))

it('a few clients of zipf make most of the requests', () => {
  const top = all('zipf').filter(({ key }) => /^client-[1-5]$/.test(key))
  expect(top.length).toBeGreaterThan(all('zipf').length * 0.4)
})

it('an attacker who rotates keys is not refused by a limit for each key', () => {
  const requests = all('rotation').filter(({ key }) => key.startsWith('attacker'))
  expect(new Set(requests.map(({ key }) => key)).size).toBe(Math.ceil(requests.length / 10))
  const [set] = report('rotation', ['10/1h fixed-window']).ruleSets
  expect(set.top.filter(({ key }) => key.startsWith('attacker'))).toEqual([])
})

it('in a retry storm refused clients retry, at the rule set that refused them only', () => {
  const { traffic, ruleSets } = report('retry-storm', ['20/1m burst 2', '100000/1s'])
  expect(ruleSets[0].retries).toBeGreaterThan(1_000)
  expect(ruleSets[0].requests).toBe(traffic.requests + ruleSets[0].retries)
  expect(ruleSets[1]).toMatchObject({ requests: traffic.requests, retries: 0, refused: 0 })
})
