import { type LogRequest, NO_DETAILS } from '../log/request.ts'
import { createEventQueue } from './event-queue.ts'
import { createRandom } from './random.ts'

/** SCENARIOS are all scenarios with a description. */
export const SCENARIOS = {
  steady: 'every client sends at even intervals',
  bursty: 'clients send bursts of 20 with pauses between',
  zipf: 'a few clients send most of the requests',
  rotation: 'half is an attacker with a new key every 10 requests',
  'retry-storm': 'a surge, after which refused clients retry',
} as const

/** ScenarioName is one of `SCENARIOS`. */
export type ScenarioName = keyof typeof SCENARIOS

/** ScenarioOptions are complete; the same ones give the same requests. */
export interface ScenarioOptions {
  readonly scenario: ScenarioName
  readonly clients: number
  /** Requests per second, of all clients together. */
  readonly ratePerSecond: number
  readonly forMs: number
  readonly seed: number
}

/** Scenario is generated traffic. */
export interface Scenario {
  /** The next request, in the order of time; undefined at the end. */
  next(): LogRequest | undefined
  /** Reports a refusal, so that the client may retry. */
  refused(request: LogRequest, ruleSet: number, retryAfterMs: number): void
}

/** Scenarios begin on January 1, 2026. */
const START_US = Date.UTC(2026, 0, 1) * 1_000
const BURST = 20
const BURST_GAP_US = 25_000
const ROTATED_AFTER = 10
const ZIPF_EXPONENT = 1.1
const SURGE = 5
const IMPATIENT_US = 100_000
const MOST_TRIES = 10

interface Arrival {
  readonly key: string
  readonly only: number
  readonly tries: number
}

/**
 * createScenario generates requests from a seed. In a retry storm every second client retries when
 * it is told to; the others retry after 100 ms. All give up after ten tries.
 */
export function createScenario(options: ScenarioOptions): Scenario {
  const { scenario, clients, ratePerSecond, forMs } = options
  const random = createRandom(options.seed)
  const endUs = START_US + forMs * 1_000
  const gapUs = 1e6 / ratePerSecond
  const queue = createEventQueue<Arrival>()
  const tries = new WeakMap<LogRequest, number>()
  const zipf = scenario === 'zipf' ? zipfShares(clients) : []
  let arrivalUs = START_US
  let arrivals = 0

  const client = (number: number) => `client-${number + 1}`
  const anyone = () => client(random.below(clients))
  const first = (key: string): Arrival => ({ key, only: -1, tries: 1 })
  /** The time to the next arrival of a Poisson process. */
  const chance = (meanUs: number) => -Math.log(1 - random.fraction()) * meanUs

  /** Adds the next arrival that is not a retry. */
  const arrive: Record<ScenarioName, () => void> = {
    steady() {
      queue.add(arrivalUs, first(client(arrivals % clients)))
      arrivalUs = START_US + (arrivals + 1) * gapUs
    },
    bursty() {
      const key = anyone()
      for (let i = 0; i < BURST; i += 1) queue.add(arrivalUs + i * BURST_GAP_US, first(key))
      arrivalUs += chance(gapUs * BURST)
    },
    zipf() {
      queue.add(arrivalUs, first(client(placeOf(zipf, random.fraction()))))
      arrivalUs += chance(gapUs)
    },
    rotation() {
      const attacks = arrivals % 2 === 1
      const rotated = Math.floor(arrivals / 2 / ROTATED_AFTER) + 1
      queue.add(arrivalUs, first(attacks ? `attacker-${rotated}` : anyone()))
      arrivalUs += chance(gapUs)
    },
    'retry-storm'() {
      queue.add(arrivalUs, first(anyone()))
      const passed = (arrivalUs - START_US) / (forMs * 1_000)
      arrivalUs += chance(passed >= 0.4 && passed < 0.5 ? gapUs / SURGE : gapUs)
    },
  }

  return {
    next() {
      while (arrivalUs < endUs && arrivalUs <= queue.nextUs()) {
        arrive[scenario]()
        arrivals += 1
      }
      const timeUs = Math.round(queue.nextUs())
      if (timeUs >= endUs) return undefined
      const { key, only, tries: tried } = queue.next()
      const request = {
        ...NO_DETAILS,
        isKey: true,
        timeUs,
        key,
        cost: 1,
        only,
      }
      tries.set(request, tried)
      return request
    },
    refused(request, ruleSet, retryAfterMs) {
      const tried = tries.get(request) ?? 1
      if (scenario !== 'retry-storm' || tried >= MOST_TRIES) return
      const patient = request.key.charCodeAt(request.key.length - 1) % 2 === 0
      const waitUs = patient ? Math.ceil(retryAfterMs * 1_000) : IMPATIENT_US
      if (!Number.isFinite(waitUs)) return
      queue.add(request.timeUs + waitUs, { key: request.key, only: ruleSet, tries: tried + 1 })
    },
  }
}

/** mostRequests is about the largest number of requests; in a retry storm each may be retried. */
export function mostRequests({ scenario, ratePerSecond, forMs }: ScenarioOptions): number {
  const tries = scenario === 'retry-storm' ? MOST_TRIES : 1
  return Math.ceil((ratePerSecond * forMs * tries) / 1_000)
}

/** The cumulative shares of requests by client. */
function zipfShares(clients: number): number[] {
  const weights = Array.from({ length: clients }, (_, i) => (i + 1) ** -ZIPF_EXPONENT)
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  let sum = 0
  return weights.map((weight) => {
    sum += weight / total
    return sum
  })
}

/** The first index whose cumulative share is above the drawn number. */
function placeOf(shares: readonly number[], drawn: number): number {
  let low = 0
  let high = shares.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if (shares[middle] > drawn) high = middle
    else low = middle + 1
  }
  return low
}
