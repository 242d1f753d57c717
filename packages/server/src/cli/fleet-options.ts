import { createLimiter, parseRule, type Rule, SluiceError } from 'sluice'
import { redisStore } from 'sluice/redis'
import { MOST_UNITS } from '../most-units.ts'
import type { Failover, FleetSetup } from '../simulate/fleet/fleet-setup.ts'
import type { Outage } from '../simulate/fleet/link.ts'
import { readArguments } from './command.ts'
import { choiceOption, durationOption, wholeOption } from './option-values.ts'

/** fleetHelp is the text of `sluice simulate --fleet --help`. */
export const fleetHelp = `Usage: sluice simulate --fleet [OPTIONS]

Simulates fleets of nodes that share one Redis, on a virtual clock and with the library's own code.
Compares what they admit with one limiter that sees every request at its instant, and with the
documented bounds. The same options always give the same report.

Rule and load:
      --rule RULE         such as '1000/1s burst 200' (default 1000/1s)
      --rate RATE         requests per second and key, or a multiple of the rule's rate: 0.8x
                          (default 1x)
      --pattern PATTERN   random, or bursts: most requests in 0.2 s of every 2 s (default random)
      --keys N            number of keys, all with the same load (default 1)
      --for TIME          virtual duration (default 30s)
      --seed N            seed of the random load and network (default 1)

Fleet; comma-separated values are compared in all combinations:
      --nodes N,…         number of nodes (default 10)
      --lease UNITS,…     units leased ahead of time; 0 is no lease (default 0)
      --lease-ms MS       how long a node may hold them (default 1000)
      --deny-cache        cache refusals in every node
      --timeout-ms MS     how long a node waits for Redis at most (default 50)
      --on-failure MODE   while Redis is unavailable: local, open or closed (default local)
      --fleet-size N      the fleetSize option of the nodes (default: the number of nodes)

Network and faults:
      --delay-ms MS       one-way latency between a node and Redis (default 1)
      --jitter-ms MS      the most that is added to it at random (default 0.5)
      --outage FROM-TO    Redis is unreachable, such as 10s-20s; repeatable
      --outage-nodes N    the outage affects only the first N nodes
      --failover TIME     the master fails, and a replica takes over
      --lost-ms MS        its last writes, which are lost (default 500)
      --down-ms MS        downtime until the replica answers (default 2000)

      --json              print the reports as JSON
  -h, --help              print this help

Exit code: 1 if a documented bound did not hold, 2 for a mistake in the options, 3 if a fleet's
process died.

Example:
  sluice simulate --fleet --rule 10000/1s --rate 0.8x --nodes 10,100 --lease 0,10,100
`

const HELP = 'sluice simulate --fleet --help'

const options = {
  fleet: { type: 'boolean' },
  // `multiple`, so that a second one is an error instead of silently replacing the first.
  rule: { type: 'string', multiple: true },
  rate: { type: 'string', default: '1x' },
  pattern: { type: 'string', default: 'random' },
  keys: { type: 'string', default: '1' },
  for: { type: 'string', default: '30s' },
  seed: { type: 'string', default: '1' },
  nodes: { type: 'string', default: '10' },
  lease: { type: 'string', default: '0' },
  'lease-ms': { type: 'string' },
  'deny-cache': { type: 'boolean', default: false },
  'timeout-ms': { type: 'string', default: '50' },
  'on-failure': { type: 'string', default: 'local' },
  'fleet-size': { type: 'string' },
  'delay-ms': { type: 'string', default: '1' },
  'jitter-ms': { type: 'string', default: '0.5' },
  outage: { type: 'string', multiple: true },
  'outage-nodes': { type: 'string' },
  failover: { type: 'string' },
  'lost-ms': { type: 'string' },
  'down-ms': { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h' },
} as const

/** The largest number of requests of one run: about ten seconds of work. */
const MOST_REQUESTS = 5_000_000
/** The largest product of requests and nodes: each node has its own timers and states to update. */
const MOST_NODE_REQUESTS = 1_000_000_000
const MOST_NODES = 10_000
/** The library's maximum for `fleetSize`. */
const LARGEST_FLEET = 10_000

/** FleetOptions are the checked options of `sluice simulate --fleet`. */
export interface FleetOptions {
  readonly setups: readonly FleetSetup[]
  readonly json: boolean
}

/** readFleetOptions returns a setup for each combination of values, or undefined for `--help`. */
export function readFleetOptions(args: readonly string[]): FleetOptions | undefined {
  const { values, positionals } = readArguments(args, options, HELP)
  if (values.help) return undefined
  if (positionals.length > 0) fail(`unexpected argument ${JSON.stringify(positionals[0])}`)
  refuseIdle(values)
  const [ruleText, ...more] = values.rule ?? ['1000/1s']
  if (more.length > 0) fail('--rule can be given once: a fleet has one rule')
  const rule = ruleOf(ruleText)
  const forMs = durationOption('--for', values.for, 1)
  const nodeCounts = list('--nodes', values.nodes, 1, MOST_NODES)
  const shared = {
    rule: ruleText,
    denyCache: values['deny-cache'],
    timeoutMs: wholeOption('--timeout-ms', values['timeout-ms'], 1, 60_000),
    onStoreFailure: choiceOption('--on-failure', values['on-failure'], ['local', 'open', 'closed']),
    delayMs: milliseconds('--delay-ms', values['delay-ms']),
    jitterMs: milliseconds('--jitter-ms', values['jitter-ms']),
    keys: wholeOption('--keys', values.keys, 1, 100_000),
    perSecond: rateOf(values.rate, rule),
    pattern: choiceOption('--pattern', values.pattern, ['random', 'bursts']),
    forMs,
    failover: failoverOf(values, forMs),
    seed: wholeOption('--seed', values.seed, 0, 2 ** 32 - 1),
  }
  checkWork((shared.perSecond * shared.keys * forMs) / 1_000, Math.max(...nodeCounts))
  const leases = list('--lease', values.lease, 0, MOST_UNITS)
  const leaseMs = wholeOption('--lease-ms', values['lease-ms'] ?? '1000', 10, 60_000)
  if (values['lease-ms'] !== undefined && Math.max(...leases) === 0) {
    fail('--lease-ms needs a --lease above 0')
  }
  const setups = nodeCounts.flatMap((nodes) =>
    leases.map((units): FleetSetup => {
      const cut = wholeOption('--outage-nodes', values['outage-nodes'] ?? String(nodes), 1, nodes)
      const size = values['fleet-size'] ?? String(nodes)
      return {
        ...shared,
        nodes,
        lease: units === 0 ? undefined : { units, leaseMs },
        fleetSize: wholeOption('--fleet-size', size, 1, LARGEST_FLEET),
        outages: (values.outage ?? []).map((text) => outageOf(text, cut, forMs)),
      }
    }),
  )
  for (const setup of setups) checkByLibrary(setup, rule)
  return { setups, json: values.json }
}

/** Refuses options that have no effect without another one. */
function refuseIdle(values: { readonly [name: string]: unknown }): void {
  for (const [name, needed] of [
    ['outage-nodes', 'outage'],
    ['lost-ms', 'failover'],
    ['down-ms', 'failover'],
  ]) {
    if (values[name] !== undefined && values[needed] === undefined) {
      fail(`--${name} needs --${needed}`)
    }
  }
}

function checkWork(requests: number, nodes: number): void {
  const [wanted, most] = [requests, MOST_REQUESTS].map((value) =>
    Math.round(value).toLocaleString('en'),
  )
  if (requests > MOST_REQUESTS) {
    fail(`the load has ${wanted} requests, the maximum is ${most}. Lower --rate, --keys or --for`)
  }
  if (requests * nodes > MOST_NODE_REQUESTS) {
    const fewer = Math.floor(MOST_NODE_REQUESTS / nodes).toLocaleString('en')
    fail(
      `the load has ${wanted} requests, the maximum is ${fewer} for ` +
        `${nodes.toLocaleString('en')} nodes. Lower --nodes, --rate, --keys or --for`,
    )
  }
}

/** Creates a limiter with these options, so that the library's own checks report mistakes first. */
function checkByLibrary({ lease, denyCache, timeoutMs, fleetSize }: FleetSetup, rule: Rule): void {
  const client = { call: () => Promise.reject(new Error('never called')) }
  createLimiter(rule, { store: redisStore(client, { lease, denyCache }), timeoutMs, fleetSize })
}

function ruleOf(text: string): Rule {
  const rule = parseRule(text)
  if (rule.capacity === Number.POSITIVE_INFINITY) fail('--rule must have a limit')
  if (rule.algorithm.grows) {
    fail(`--rule: fleets of ${rule.algorithm.name} cannot be simulated, since its state is a list`)
  }
  return rule
}

function rateOf(text: string, { limit, perUs }: Rule): number {
  const found = /^(\d+(?:\.\d+)?)(x?)$/.exec(text)
  const rate = Number(found?.[1]) * (found?.[2] ? (limit * 1_000_000) / perUs : 1)
  if (rate > 0) return rate
  fail(
    `--rate must be requests per second, such as 500, or a multiple of the rule's, such as 1.5x, got "${text}"`,
  )
}

function failoverOf(
  values: { failover?: string; 'lost-ms'?: string; 'down-ms'?: string },
  forMs: number,
): Failover | undefined {
  if (values.failover === undefined) return undefined
  const lostMs = wholeOption('--lost-ms', values['lost-ms'] ?? '500', 0, 86_400_000)
  const downMs = wholeOption('--down-ms', values['down-ms'] ?? '2000', 0, 86_400_000)
  const atMs = durationOption('--failover', values.failover)
  if (atMs < forMs) return { atMs, lostMs, downMs }
  fail('--failover must be earlier than --for')
}

function outageOf(text: string, nodes: number, forMs: number): Outage {
  const [from, to, ...rest] = text.split('-')
  if (to === undefined || rest.length > 0)
    fail(`--outage must be FROM-TO, such as 10s-20s, got "${text}"`)
  const [fromMs, toMs] = [from, to].map((part) => durationOption('--outage', part))
  if (fromMs >= forMs) fail(`--outage must begin earlier than --for, got "${text}"`)
  if (fromMs < toMs) return { fromMs, toMs, nodes }
  fail(`--outage must end after it begins, got "${text}"`)
}

function milliseconds(name: string, text: string): number {
  const ms = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && ms <= 10_000) return ms
  fail(`${name} must be milliseconds from 0 to 10,000, got "${text}"`)
}

function list(name: string, text: string, least: number, most: number): number[] {
  return [...new Set(text.split(',').map((part) => wholeOption(name, part.trim(), least, most)))]
}

function fail(problem: string): never {
  throw new SluiceError('SLUICE_OPTION', `${problem}. Run ${HELP} for the options.`)
}
