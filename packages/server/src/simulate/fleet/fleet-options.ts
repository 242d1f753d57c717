import { createLimiter, parseRule, type Rule, SluiceError } from 'sluice'
import { redisStore } from 'sluice/redis'
import { readArguments } from '../../command.ts'
import type { Failover, FleetSetup } from './fleet-setup.ts'
import type { Outage } from './link.ts'

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
  rule: { type: 'string', default: '1000/1s' },
  rate: { type: 'string', default: '1x' },
  pattern: { type: 'string', default: 'random' },
  keys: { type: 'string', default: '1' },
  for: { type: 'string', default: '30s' },
  seed: { type: 'string', default: '1' },
  nodes: { type: 'string', default: '10' },
  lease: { type: 'string', default: '0' },
  'lease-ms': { type: 'string', default: '1000' },
  'deny-cache': { type: 'boolean', default: false },
  'timeout-ms': { type: 'string', default: '50' },
  'on-failure': { type: 'string', default: 'local' },
  'fleet-size': { type: 'string' },
  'delay-ms': { type: 'string', default: '1' },
  'jitter-ms': { type: 'string', default: '0.5' },
  outage: { type: 'string', multiple: true },
  'outage-nodes': { type: 'string' },
  failover: { type: 'string' },
  'lost-ms': { type: 'string', default: '500' },
  'down-ms': { type: 'string', default: '2000' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h' },
} as const

/** The most requests of one run: some ten seconds of work. */
const MOST_REQUESTS = 5_000_000
const MOST_NODES = 10_000

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
  const rule = ruleOf(values.rule)
  const forMs = durationMs('--for', values.for)
  const outageNodes = values['outage-nodes']
  const shared = {
    rule: values.rule,
    denyCache: values['deny-cache'],
    timeoutMs: whole('--timeout-ms', values['timeout-ms'], 1, 60_000),
    onStoreFailure: oneOf('--on-failure', values['on-failure'], ['local', 'open', 'closed']),
    delayMs: milliseconds('--delay-ms', values['delay-ms']),
    jitterMs: milliseconds('--jitter-ms', values['jitter-ms']),
    keys: whole('--keys', values.keys, 1, 100_000),
    perSecond: rateOf(values.rate, rule),
    pattern: oneOf('--pattern', values.pattern, ['random', 'bursts']),
    forMs,
    failover: failoverOf(values, forMs),
    seed: whole('--seed', values.seed, 0, 2 ** 32 - 1),
  }
  const requests = (shared.perSecond * shared.keys * forMs) / 1_000
  if (requests > MOST_REQUESTS) {
    fail(
      `that would be ${Math.round(requests).toLocaleString('en')} requests, and ` +
        `${MOST_REQUESTS.toLocaleString('en')} are the most. Lower --rate, --keys or --for`,
    )
  }
  const leaseMs = whole('--lease-ms', values['lease-ms'], 10, 60_000)
  const setups = list('--nodes', values.nodes, 1, MOST_NODES).flatMap((nodes) =>
    list('--lease', values.lease, 0, 10_000_000).map((units): FleetSetup => {
      const cut = whole('--outage-nodes', outageNodes ?? String(nodes), 1, MOST_NODES)
      const size = whole('--fleet-size', values['fleet-size'] ?? String(nodes), 1, 100_000)
      return {
        ...shared,
        nodes,
        lease: units === 0 ? undefined : { units, leaseMs },
        fleetSize: size,
        outages: (values.outage ?? []).map((text) => outageOf(text, cut)),
      }
    }),
  )
  for (const setup of setups) checkByLibrary(setup, rule)
  return { setups, json: values.json }
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
  { failover, 'lost-ms': lost, 'down-ms': down }: { [name: string]: unknown },
  forMs: number,
): Failover | undefined {
  const lostMs = whole('--lost-ms', String(lost), 0, 86_400_000)
  const downMs = whole('--down-ms', String(down), 0, 86_400_000)
  if (failover === undefined) return undefined
  const atMs = durationMs('--failover', String(failover))
  if (atMs < forMs) return { atMs, lostMs, downMs }
  fail('--failover must be before the end, see --for')
}

function outageOf(text: string, nodes: number): Outage {
  const [from, to, ...rest] = text.split('-')
  if (to === undefined || rest.length > 0)
    fail(`--outage is FROM-TO, such as 10s-20s, got "${text}"`)
  const [fromMs, toMs] = [from, to].map((part) => durationMs('--outage', part))
  if (fromMs < toMs) return { fromMs, toMs, nodes }
  fail(`--outage must end after it begins, got "${text}"`)
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

function durationMs(name: string, text: string): number {
  const found = /^(\d{1,9})(ms|s|m|h)$/.exec(text)
  if (found) return Number(found[1]) * UNIT_MS[found[2]]
  fail(`${name} must be a time such as 500ms, 10s or 2m, got "${text}"`)
}

function milliseconds(name: string, text: string): number {
  const ms = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && ms <= 10_000) return ms
  fail(`${name} must be milliseconds from 0 to 10,000, got "${text}"`)
}

function list(name: string, text: string, least: number, most: number): number[] {
  return [...new Set(text.split(',').map((part) => whole(name, part.trim(), least, most)))]
}

function whole(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= least && value <= most) return value
  const range = `from ${least.toLocaleString('en')} to ${most.toLocaleString('en')}`
  fail(`${name} must be a whole number ${range}, got "${text}"`)
}

function oneOf<const T extends string>(name: string, text: string, known: readonly T[]): T {
  const found = known.find((each) => each === text)
  if (found) return found
  fail(`${name} must be ${known.slice(0, -1).join(', ')} or ${known.at(-1)}, got "${text}"`)
}

function fail(problem: string): never {
  throw new SluiceError('SLUICE_OPTION', `${problem}. Run ${HELP} for what is accepted.`)
}
