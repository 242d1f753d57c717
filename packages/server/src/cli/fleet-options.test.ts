import { describe, expect, it } from 'vitest'
import { fleetHelp, readFleetOptions } from './fleet-options.ts'

const setupsOf = (...args: string[]) => readFleetOptions(args)?.setups ?? []

describe('the options of a fleet', () => {
  it('are complete without any', () => {
    expect(setupsOf()).toEqual([
      {
        rule: '1000/1s',
        nodes: 10,
        lease: undefined,
        denyCache: false,
        timeoutMs: 50,
        onStoreFailure: 'local',
        fleetSize: 10,
        delayMs: 1,
        jitterMs: 0.5,
        keys: 1,
        perSecond: 1_000,
        pattern: 'random',
        forMs: 30_000,
        outages: [],
        failover: undefined,
        seed: 1,
      },
    ])
  })

  it('give a setup for each combination of nodes and leases', () => {
    const setups = setupsOf('--fleet', '--nodes', '1, 10', '--lease', '0,50', '--lease-ms', '200')
    const lease = { units: 50, leaseMs: 200 }
    expect(setups.map(({ nodes, fleetSize, lease }) => ({ nodes, fleetSize, lease }))).toEqual([
      { nodes: 1, fleetSize: 1, lease: undefined },
      { nodes: 1, fleetSize: 1, lease },
      { nodes: 10, fleetSize: 10, lease: undefined },
      { nodes: 10, fleetSize: 10, lease },
    ])
  })

  it('take the rate as a number or as a multiple of the rule', () => {
    const rate = (...args: string[]) => setupsOf('--rule', '30/1m', ...args)[0].perSecond
    expect(rate('--rate', '7')).toBe(7)
    expect(rate('--rate', '1.5x')).toBe(0.75)
  })

  it('set the times of faults', () => {
    const outages = ['--outage', '1s-2500ms', '--outage', '3s-4s', '--outage-nodes', '3']
    const [setup] = setupsOf(...outages, '--failover', '5s', '--lost-ms', '9', '--down-ms', '0')
    expect(setup).toMatchObject({
      outages: [
        { fromMs: 1_000, toMs: 2_500, nodes: 3 },
        { fromMs: 3_000, toMs: 4_000, nodes: 3 },
      ],
      failover: { atMs: 5_000, lostMs: 9, downMs: 0 },
    })
  })

  it('are all explained', () => {
    expect(readFleetOptions(['--help'])).toBeUndefined()
    const explained = [...fleetHelp.matchAll(/^ +(?:-h, )?(--[a-z-]+)/gm)].map(([, name]) => name)
    expect(explained).toHaveLength(22)
  })
})

describe('a mistake', () => {
  it.each([
    [['--nodes', '0'], /--nodes must be a whole number from 1 to 10,000, got "0"/],
    [['--nodes', '1,,2'], /--nodes must be a whole number .*, got ""/],
    [['--lease', '-1'], /--lease must be a whole number from 0 to 1,000,000,000,000, got "-1"/],
    [['--lease', '1', '--lease-ms', '5'], /--lease-ms must be a whole number from 10/],
    [['--rule', '5'], /cannot read the rule "5"/],
    [['--rule', 'unlimited'], /--rule must have a limit/],
    [['--rule', '5/1s sliding-window-log'], /cannot be simulated, since its state is a list/],
    [['--rule', '5/1s leaky-bucket', '--lease', '2'], /units of a leaky-bucket cannot be leased/],
    [['--rate', '0'], /--rate must be requests per second/],
    [['--rate', '2y'], /--rate must be requests per second/],
    [['--rate', '9000000'], /270,000,000 requests, the maximum is 5,000,000/],
    [
      ['--for', '10'],
      /--for must be a time from 1ms to 400d, such as 500ms, 90s, 10m or 1h, got "10"/,
    ],
    [['--delay-ms', '1e3'], /--delay-ms must be milliseconds from 0 to 10,000/],
    [['--pattern', 'even'], /--pattern must be random or bursts, got "even"/],
    [['--on-failure', 'x'], /--on-failure must be local, open or closed, got "x"/],
    [['--outage', '5s'], /--outage must be FROM-TO, such as 10s-20s, got "5s"/],
    [['--outage', '5s-5s'], /--outage must end after it begins/],
    [['--failover', '30s'], /--failover must be earlier than --for/],
    [['--outage', '30s-40s'], /--outage must begin earlier than --for, got "30s-40s"/],
    [['--outage-nodes', '3'], /--outage-nodes needs --outage/],
    [
      ['--outage', '1s-2s', '--nodes', '3,10', '--outage-nodes', '4'],
      /--outage-nodes must be a whole number from 1 to 3, got "4"/,
    ],
    [['--lost-ms', '500'], /--lost-ms needs --failover/],
    [['--down-ms', '2000'], /--down-ms needs --failover/],
    [['--lease-ms', '500'], /--lease-ms needs a --lease above 0/],
    [['--lease', '0', '--lease-ms', '500'], /--lease-ms needs a --lease above 0/],
    [['--rule', '5/1s', '--rule', '6/1s'], /--rule can be given once/],
    [['--fleet-size', '10001'], /--fleet-size must be a whole number from 1 to 10,000/],
    [
      ['--nodes', '10,10000', '--rate', '48000', '--for', '100s'],
      /4,800,000 requests, the maximum is 100,000 for 10,000 nodes. Lower --nodes/,
    ],
    [['--sede', '1'], /Unknown option '--sede'/],
    [['file.txt'], /unexpected argument "file.txt"/],
  ])('in %j is reported', (args, message) => {
    expect(() => setupsOf(...args)).toThrow(message)
    expect(() => setupsOf(...args)).toThrow(expect.objectContaining({ name: 'SluiceError' }))
  })
})
