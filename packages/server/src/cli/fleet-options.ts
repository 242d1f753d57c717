import { createLimiter, parseRule, type Rule, SluiceError } from 'sluice'
import { redisStore } from 'sluice/redis'
import { MOST_UNITS } from '../most-units.ts'
import type { Failover, FleetSetup } from '../simulate/fleet/fleet-setup.ts'
import type { Outage } from '../simulate/fleet/link.ts'
import { readArguments } from './command.ts'
import { choiceOption, durationOption, wholeOption } from './option-values.ts'

/** fleetHelp explains the options. */
export const fleetHelp = `Usage: sluice simulate --fleet [OPTIONS]

Runs fleets of nodes that share one Redis on a virtual clock, by the library's own code, and compares
what they admit with one limiter that sees every request at its instant, and with the documented
bounds. The same options give the same report.

Rule and load:
      --rule RULE         such as '1000/1s burst 200' (default 1000/1s)
      --rate RATE         requests a second for each key, or a multiple of the rule's: 0.8x (default 1x)
      --pattern PATTERN   random, or bursts: most of them in 0.2 s of every 2 s (default random)
      --keys N            keys, all alike (default 1)
      --for TIME          how long, of virtual time (default 30s)
      --seed N            another seed is another load and network (default 1)

Fleet; values may be lists, and all combinations are compared:
      --nodes N,…         nodes (default 10)
      --lease UNITS,…     units taken ahead of time; 0 is none (default 0)
      --lease-ms MS       how long they may be held (default 1000)
      --deny-cache        remember refusals
      --timeout-ms MS     the longest that a node waits for Redis (default 50)
      --on-failure MODE   local, open or closed (default local)
      --fleet-size N      what nodes are told of the fleet's size (default: their number)

Network and faults:
      --delay-ms MS       from a node to Redis, and the same back (default 1)
      --jitter-ms MS      the most that comes on top, at random (default 0.5)
      --outage FROM-TO    nothing reaches Redis, such as 10s-20s; may be given again
      --outage-nodes N    only the first N nodes are cut off
      --failover TIME     the master is lost, and a replica takes over
      --lost-ms MS        what it wrote last and is lost (default 500)
      --down-ms MS        until the replica answers (default 2000)

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
  // More than one is told of, and not the last taken.
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

/** The most requests of one run: some ten seconds of work. */
const MOST_REQUESTS = 5_000_000
/** Every node has timers and states of its own, so many of them take longer for each request. */
const MOST_NODE_REQUESTS = 1_000_000_000
const MOST_NODES = 10_000
/** The most that the library takes. */
const LARGEST_FLEET = 10_000

/** FleetOptions is what the command was told. */
export interface FleetOptions {
  readonly setups: readonly FleetSetup[]
  readonly json: boolean
}

/** readFleetOptions gives a setup for each combination, or undefined if help is wanted. */
export function readFleetOptions(args: readonly string[]): FleetOptions | undefined {
  const { values, positionals } = readArguments(args, options, HELP)
  if (values.help) return undefined
  if (positionals.length > 0) fail(`there is nothing to do with ${JSON.stringify(positionals[0])}`)
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
    fail('--lease-ms goes with a --lease')
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

/** What would change nothing is a mistake: who wrote it expects that it does something. */
function refuseIdle(values: { readonly [name: string]: unknown }): void {
  for (const [name, needed] of [
    ['outage-nodes', 'outage'],
    ['lost-ms', 'failover'],
    ['down-ms', 'failover'],
  ]) {
    if (values[name] !== undefined && values[needed] === undefined) {
      fail(`--${name} goes with --${needed}`)
    }
  }
}

function checkWork(requests: number, nodes: number): void {
  const [asked, most] = [requests, MOST_REQUESTS].map((value) =>
    Math.round(value).toLocaleString('en'),
  )
  if (requests > MOST_REQUESTS) {
    fail(`that would be ${asked} requests, and ${most} are the most. Lower --rate, --keys or --for`)
  }
  if (requests * nodes > MOST_NODE_REQUESTS) {
    const fewer = Math.floor(MOST_NODE_REQUESTS / nodes).toLocaleString('en')
    fail(
      `that would be ${asked} requests, and ${fewer} are the most for ` +
        `${nodes.toLocaleString('en')} nodes. Lower --nodes, --rate, --keys or --for`,
    )
  }
}

/** What the library would refuse, such as a lease of a rule that cannot be leased, it refuses here. */
function checkByLibrary({ lease, denyCache, timeoutMs, fleetSize }: FleetSetup, rule: Rule): void {
  const client = { call: () => Promise.reject(new Error('nobody is asked')) }
  createLimiter(rule, { store: redisStore(client, { lease, denyCache }), timeoutMs, fleetSize })
}

function ruleOf(text: string): Rule {
  const rule = parseRule(text)
  if (rule.capacity === Number.POSITIVE_INFINITY) fail('--rule must have a limit')
  if (rule.algorithm.grows) {
    fail(`--rule: fleets of ${rule.algorithm.name} cannot be simulated, since it is kept as a list`)
  }
  return rule
}

function rateOf(text: string, { limit, perUs }: Rule): number {
  const found = /^(\d+(?:\.\d+)?)(x?)$/.exec(text)
  const rate = Number(found?.[1]) * (found?.[2] ? (limit * 1_000_000) / perUs : 1)
  if (rate > 0) return rate
  fail(`--rate must be requests a second, such as 500, or a multiple, such as 1.5x, got "${text}"`)
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
  fail('--failover must be before the end, see --for')
}

function outageOf(text: string, nodes: number, forMs: number): Outage {
  const [from, to, ...rest] = text.split('-')
  if (to === undefined || rest.length > 0)
    fail(`--outage is FROM-TO, such as 10s-20s, got "${text}"`)
  const [fromMs, toMs] = [from, to].map((part) => durationOption('--outage', part))
  if (fromMs >= forMs) fail(`--outage must begin before the end, see --for, got "${text}"`)
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
  throw new SluiceError('SLUICE_OPTION', `${problem}. Run ${HELP} for what is accepted.`)
}
