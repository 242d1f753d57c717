import type { LogRequest } from '../log/request.ts'
import type { Report, Traffic } from '../report/report.ts'
import { createClients } from './clients.ts'
import type { Proposal } from './proposal.ts'
import { sharesOf, suggest } from './suggest.ts'
import { createTally } from './tally.ts'
import { createTimeline } from './timeline.ts'
import { createUsage, percentile } from './usage.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** SimulationOptions are the proposals and the size of the report. */
export interface SimulationOptions {
  /** The clock of the proposals. */
  readonly clock: VirtualClock
  readonly proposals: readonly Proposal[]
  /** The largest number of clients tracked individually. */
  readonly maxClients: number
  /** How many of the most refused clients are listed. */
  readonly top: number
  /** Called with every refusal by a proposal. */
  readonly onRefused?: (request: LogRequest, proposal: number, retryAfterMs: number) => void
}

/** Simulation plays requests to proposals on a virtual clock. */
export interface Simulation {
  /** Moves the clock on to the request's time; the clock never steps back. */
  take(request: LogRequest): void
  report(): Omit<Report, 'version' | 'source'>
}

/** createSimulation plays each request to all proposals at once, so that one pass compares them. */
export function createSimulation(options: SimulationOptions): Simulation {
  const { clock, proposals, onRefused } = options
  const clients = createClients(options.maxClients)
  const tallies = proposals.map(createTally)
  const usage = createUsage()
  /** A row of all requests, then one of refusals for each proposal. */
  const timeline = createTimeline(1 + proposals.length)
  let requests = 0
  let units = 0
  let untracked = 0
  let startUs = 0
  let endUs = 0

  function traffic(): Traffic {
    return {
      requests,
      units,
      clients: clients.size(),
      untracked,
      startTime: timeText(startUs),
      endTime: timeText(endUs),
      spanMs: (endUs - startUs) / 1_000,
      timeline: {
        startTime: timeText(timeline.startUs()),
        binMs: timeline.widthUs() / 1_000,
        requests: timeline.row(0),
      },
    }
  }

  return {
    take(request) {
      clock.set(request.timeUs)
      const nowUs = clock.nowUs()
      const client = clients.numberOf(request.key)
      // Retries are a consequence of a proposal, not part of the traffic.
      if (request.only < 0) {
        if (requests === 0) startUs = nowUs
        endUs = nowUs
        requests += 1
        units += request.cost
        timeline.count(0, nowUs)
        if (client >= 0) usage.count(client, request.cost, nowUs)
        else untracked += 1
      }
      for (let i = 0; i < proposals.length; i += 1) {
        if (request.only >= 0 && request.only !== i) continue
        const verdict = proposals[i].decide(request)
        tallies[i].count(request, client, verdict)
        if (verdict.allowed) continue
        timeline.count(1 + i, nowUs)
        // A client on a route in shadow mode is let through, and does not retry.
        if (proposals[i].placeOf(request).mode === 'shadow') continue
        onRefused?.(request, i, verdict.retryAfterMs)
      }
    },

    report() {
      const windows = usage.sum(clients.size())
      const shares = sharesOf(clients.size())
      return {
        traffic: traffic(),
        usage: windows.map((window) => ({
          per: window.per,
          percentiles: shares.map((share) => ({ share, use: percentile(window.largest, share) })),
        })),
        suggestions: suggest(windows, endUs - startUs),
        ruleSets: tallies.map((tally, i) =>
          tally.report(clients, options.top, timeline.row(1 + i)),
        ),
      }
    },
  }
}

function timeText(us: number): string {
  const ms = Math.floor(us / 1_000)
  // `Date` cannot represent times after the year 275,760.
  return ms <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`
}
