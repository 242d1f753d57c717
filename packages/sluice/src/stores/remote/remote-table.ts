import type { Decision } from '../../core/decision.ts'
import type { Rule } from '../../core/rule.ts'
import { createTimeLimit } from '../../failure/time-limit.ts'
import type { AsyncTable, Request } from '../store.ts'
import { createDenyCache, type DenyCacheOptions } from './deny-cache.ts'
import type { Engine, Trip } from './engine.ts'
import { createEngineTime } from './engine-time.ts'
import { type Answers, createLane, type Lane } from './lane.ts'
import { createLeases, type LeaseOptions } from './leases.ts'
import { type RemoteRules, remoteRules } from './remote-rules.ts'

/** RemoteTable is the table of one limiter name; each limiter opens it with its own timeout. */
export interface RemoteTable {
  open(timeoutMs: number): AsyncTable
  use(rules: readonly Rule[]): RemoteRules
}

export interface RemoteTableParts {
  readonly engine: Engine
  /** Throws if a rule cannot be kept here. */
  check(rule: Rule): void
  readonly denyCache: Required<DenyCacheOptions> | undefined
  readonly lease: Required<LeaseOptions> | undefined
}

export function createRemoteTable(parts: RemoteTableParts): RemoteTable {
  const { engine, check, lease } = parts
  const lanes = new Map<number, Lane>()
  const denied = parts.denyCache && createDenyCache(parts.denyCache)
  const leases = lease && createLeases(lease, giveBack)
  let contended = 0

  function use(rules: readonly Rule[]): RemoteRules {
    for (const rule of rules) {
      check(rule)
      engine.prepare(rule)
    }
    return remoteRules(rules)
  }

  const answers: Answers = {
    actedOn: (trip) => (request, decision, leased) => acted(request, decision, leased, trip),
    failed(request, error) {
      if (request.lease > 0) leases?.failed(request.key)
      request.failed(error)
    },
    contended(rows) {
      contended += rows
    },
  }

  /** Answers a request; a check or peek has a decision. */
  function acted(
    request: Request,
    decision: Decision | undefined,
    leased: number,
    trip: Trip,
  ): void {
    const { verb, key, cost } = request
    const set = request.set as RemoteRules
    if (request.lease > 0) leases?.note(set, key, leased, trip)
    if (decision && verb === 'check' && !decision.allowed) {
      denied?.note(set, key, cost, trip, decision.retryAfterMs)
    }
    if (!decision && verb !== 'charge') denied?.drop(key)
    request.done(decision)
  }

  function laneOf(key: string): Lane {
    const slot = engine.slotOf(key)
    let lane = lanes.get(slot)
    if (!lane) {
      lane = createLane(engine, createEngineTime(engine.time), answers)
      lanes.set(slot, lane)
    }
    return lane
  }

  function ask(requests: readonly Request[], timeoutMs: number): void {
    const nowMs = performance.now()
    const used = requests.map((request) => {
      prepare(request)
      const lane = laneOf(request.key)
      lane.add(request)
      return lane
    })
    // A lane that was there before finds nothing in line any more.
    for (const lane of used) lane.go(nowMs, timeoutMs)
  }

  /** Sees to what this node holds of a key before the store is asked. */
  function prepare(request: Request): void {
    if (!leases) return
    const { verb, set, key, cost } = request
    const isPlain = verb === 'check' && request.generation === 0
    if (isPlain) request.lease = leases.wish(set as RemoteRules, key, cost)
    else if (verb === 'block') leases.giveBack(key)
    else if (verb === 'reset') leases.drop(key)
  }

  /** Gives units of a lease back. No caller waits for it. */
  function giveBack(set: RemoteRules, key: string, cost: number, untilUs: number): Promise<void> {
    const timeoutMs = lease!.leaseMs
    return new Promise((resolve, reject) => {
      const idle = { isContended: false, order: 0, next: undefined, lease: 0 }
      const none = { generation: 0, held: undefined, change: 0, result: undefined }
      const sent = { fields: undefined, isSent: false }
      const request: Request = {
        ...{ verb: 'refund', set, key, cost, untilUs, ...idle, ...none, ...sent },
        dueMs: performance.now() + timeoutMs,
        done: () => resolve(),
        failed: reject,
      }
      ask([request], timeoutMs)
    })
  }

  function open(timeoutMs: number): AsyncTable {
    const { limited } = createTimeLimit(timeoutMs)
    return {
      use,
      partOf: engine.partOf,
      decideAtOnce(given, key, cost, spend) {
        const set = given as RemoteRules
        const leased = leases?.take(set, key, cost, spend)
        return leased ?? (spend ? denied?.recall(set, key, cost) : undefined)
      },
      ask: (requests) => ask(requests, timeoutMs),
      async clear() {
        leases?.drop()
        await engine.clear(limited)
        denied?.clear()
      },
      keys: () => engine.keys(limited),
      stats: () => ({ contended }),
      close: async () => leases?.close(),
    }
  }

  return { open, use }
}
