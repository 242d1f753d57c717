import type { Decision } from '../../core/decision.ts'
import type { AnyKey } from '../../core/key.ts'
import type { Rule } from '../../core/rule.ts'
import { createTimeLimit, type TimeLimit } from '../../failure/time-limit.ts'
import type { OpenRow } from '../../rows/open-row.ts'
import { type JointSet, jointSet } from '../joint/joint-set.ts'
import type { AsyncTable, Request, RequestRow, RuleSet } from '../store.ts'
import { createDenyCache, type DenyCacheOptions } from './deny-cache.ts'
import type { Engine, Trip } from './engine.ts'
import { createEngineTime } from './engine-time.ts'
import { type Answers, createLane, type Lane } from './lane.ts'
import { createLeases, type LeaseOptions } from './leases.ts'
import type { RowNames } from './names.ts'
import { createRemoteRules, type RemoteRules } from './remote-rules.ts'
import { spread } from './spread.ts'

/** RemoteTable is the table of one limiter name; each limiter opens it with its own timeout. */
export interface RemoteTable {
  open(timeoutMs: number): AsyncTable
  use(rules: readonly Rule[], off?: readonly string[]): RuleSet
}

/** RemoteTableParts are the parts from which a remote table is built. */
export interface RemoteTableParts {
  readonly engine: Engine
  /** The names of rows; for keys with fields, one per field. */
  readonly names: readonly RowNames[]
  readonly fields: readonly string[]
  /** Throws if the store does not support a rule. */
  check(rule: Rule): void
  readonly denyCache: Required<DenyCacheOptions> | undefined
  readonly lease: Required<LeaseOptions> | undefined
  /** What replaces each key. */
  readonly hash: ((key: AnyKey) => AnyKey) | undefined
}

/** createRemoteTable creates the table of one limiter on an engine. */
export function createRemoteTable(parts: RemoteTableParts): RemoteTable {
  const { engine, names, fields, check, lease } = parts
  const { nameOf } = names[0]
  const isJoint = fields.length > 0
  const lanes = new Map<number, Lane>()
  const denied = parts.denyCache && createDenyCache(parts.denyCache)
  const leases = lease && createLeases(lease, giveBack)
  const setOf = createRemoteRules()
  const noRules = setOf([])
  let contended = 0

  function use(rules: readonly Rule[], off: readonly string[] = []): RuleSet {
    for (const rule of rules) {
      check(rule)
      engine.prepare(rule)
    }
    return isJoint ? jointSet(rules, fields, off, setOf) : setOf(rules)
  }

  /** Returns the rows of a request; undefined for a key without fields. */
  function rowsOf({ verb, set, fields: key }: Request): readonly RequestRow[] | undefined {
    if (!key) return undefined
    if (verb !== 'block' && verb !== 'unblock' && verb !== 'reset') {
      return (set as JointSet).parts.map(({ field, set: own }) => ({
        name: names[field].nameOf(key[field]!),
        set: own,
      }))
    }
    return key.flatMap((value, field) =>
      value === null ? [] : [{ name: names[field].nameOf(value), set: noRules }],
    )
  }

  const answers: Answers = {
    actedOn: (trip) => (request, decision, leased, rows) =>
      acted(request, decision, leased, trip, rows),
    failed(request, error) {
      if (request.lease > 0) leases?.failed(request.key)
      request.failed(error)
    },
    contended(rows) {
      contended += rows
    },
  }

  /** Answers a request. A check or peek has a decision. */
  function acted(
    request: Request,
    decision: Decision | undefined,
    leased: number,
    trip: Trip,
    rows: readonly OpenRow[] | undefined,
  ): void {
    const { verb, key } = request
    const set = request.set as RemoteRules
    if (request.lease > 0) leases?.note(set, key, leased, trip)
    // Do not cache refusals that a penalty counts: each must reach the store. Blocks can be cached.
    const isCounted = set.penalty !== undefined && decision?.source !== 'blocked'
    if (decision && verb === 'check' && !decision.allowed && !request.pending && !isCounted) {
      denied?.note(request, rows, trip, decision.retryAfterMs)
    }
    if (!decision && verb !== 'charge') denied?.drop(key, request.rows)
    request.done(decision)
  }

  function laneOf({ key, rows }: Request): Lane {
    const slot = engine.slotOf(rows ? rows[0].name : nameOf(key))
    let lane = lanes.get(slot)
    if (!lane) {
      lane = createLane(engine, nameOf, createEngineTime(engine.time), answers)
      lanes.set(slot, lane)
    }
    return lane
  }

  function ask(requests: readonly Request[], timeoutMs: number): void {
    const nowMs = performance.now()
    const used: Lane[] = []
    const add = (request: Request) => {
      const lane = laneOf(request)
      lane.add(request)
      used.push(lane)
    }
    const send = (request: Request) => {
      const lane = laneOf(request)
      lane.add(request)
      lane.go(performance.now(), timeoutMs)
    }
    for (const request of requests) {
      prepare(request)
      const { rows } = request
      if (rows && isSpread(rows)) void spread(request, rows, timeoutMs, send)
      else add(request)
    }
    // A lane that has sent its requests already finds nothing to send.
    for (const lane of used) lane.go(nowMs, timeoutMs)
  }

  /** Tells whether no single trip can reach all these rows. */
  function isSpread([first, ...others]: readonly RequestRow[]): boolean {
    if (others.length === 0) return false
    const slot = engine.slotOf(first.name)
    return engine.isRowwise || others.some(({ name }) => engine.slotOf(name) !== slot)
  }

  /** Updates the leases and cached refusals of a key before the request is sent. */
  function prepare(request: Request): void {
    request.rows = rowsOf(request)
    if (!leases) return
    const { verb, set, key, cost } = request
    const isPlain = verb === 'check' && request.generation === 0
    if (isPlain) request.lease = leases.wish(set as RemoteRules, key, cost)
    else if (verb === 'block') leases.giveBack(key)
    else if (verb === 'reset') leases.drop(key)
  }

  /** Returns units of a lease to the store. No caller waits for it. */
  function giveBack(set: RemoteRules, key: string, cost: number, untilUs: number): Promise<void> {
    const timeoutMs = lease!.leaseMs
    return new Promise((resolve, reject) => {
      const idle = { isContended: false, order: 0, next: undefined, lease: 0 }
      const none = { generation: 0, held: undefined, change: 0, result: undefined }
      const alone = { pending: undefined, isCounted: false }
      const sent = { fields: undefined, rows: undefined, isSent: false }
      const request: Request = {
        ...{ verb: 'refund', set, key, cost, untilUs, ...idle, ...none, ...sent, ...alone },
        dueMs: performance.now() + timeoutMs,
        done: () => resolve(),
        failed: reject,
      }
      ask([request], timeoutMs)
    })
  }

  /** Lists the rows of each field, as keys with that one field. */
  async function* fieldKeys(limited: TimeLimit['limited']): AsyncIterable<readonly AnyKey[]> {
    for (const [field, own] of names.entries()) {
      for await (const page of engine.keys(own, limited)) {
        yield page.map((key) => fields.map((_, i) => (i === field ? key : null)))
      }
    }
  }

  function open(timeoutMs: number): AsyncTable {
    const { limited } = createTimeLimit(timeoutMs)
    return {
      use,
      hash: parts.hash,
      partOf: isJoint ? undefined : (key) => engine.partOf(nameOf(key)),
      decideAtOnce(given, key, cost, spend) {
        const set = given as RemoteRules
        const leased = leases?.take(set, key, cost, spend)
        return leased ?? (spend ? denied?.recall(given, key, cost) : undefined)
      },
      ask: (requests) => ask(requests, timeoutMs),
      async clear() {
        leases?.drop()
        for (const each of names) await engine.clear(each, limited)
        denied?.clear()
      },
      keys: () => (isJoint ? fieldKeys(limited) : engine.keys(names[0], limited)),
      stats: () => ({ contended }),
      close: async () => leases?.close(),
    }
  }

  return { open, use }
}
