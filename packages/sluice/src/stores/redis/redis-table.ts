import type { Rule } from '../../core/rule.ts'
import { createTimeLimit } from '../../failure/time-limit.ts'
import { writeRow } from '../../rows/codec.ts'
import type { AsyncTable } from '../store.ts'
import { type Call, readView, settleCalls, type Trip } from './batch.ts'
import { carriedOver } from './carry.ts'
import type { Connection } from './client.ts'
import { DecideCall, decisionFrom } from './decide-call.ts'
import { createDenyCache, type DenyCacheOptions } from './deny-cache.ts'
import { createLane, type Lane, type LaneParts } from './lane.ts'
import { createLeases, type LeaseOptions } from './leases.ts'
import { listKeys, removeKeys } from './listing.ts'
import { escapeName } from './names.ts'
import { createRedisTime, type RedisTime } from './redis-time.ts'
import { type RedisRules, redisRules } from './rule-set.ts'
import { HELLO, SWAP } from './script.ts'

/** RedisTable is the table of one limiter name; each limiter opens it with its own timeout. */
export interface RedisTable {
  open(timeoutMs: number): AsyncTable
  use(rules: readonly Rule[]): RedisRules
}

/** Slots in a row that are one part of a Cluster: 64 of 16,384. */
const PART_BITS = 6

/** How long others wait for the first trip, which one of them has made. */
const PATIENCE_MS = 20

/** The longest that a trip may take by which a row is carried over. */
const CARRY_MS = 1_000

export interface TableParts {
  readonly connection: Connection
  /** What the names of all keys begin with. */
  readonly prefix: string
  /** What Redis has told of its clock at first: a first guess for every slot. */
  readonly time: RedisTime
  readonly run: LaneParts['run']
  readonly runCheck: LaneParts['runCheck']
  /** Throws if a rule cannot be kept here. */
  check(rule: Rule): void
  readonly denyCache: Required<DenyCacheOptions> | undefined
  readonly lease: Required<LeaseOptions> | undefined
}

export function createRedisTable({
  connection,
  prefix,
  time,
  run,
  runCheck,
  check,
  denyCache,
  lease,
}: TableParts): RedisTable {
  const lanes = new Map<number, Lane>()
  const { limited } = createTimeLimit(CARRY_MS)
  const blockOnly = redisRules([])
  const denied = denyCache && createDenyCache(denyCache)
  const leases =
    lease &&
    createLeases(lease, (set, key, cost, edgeUs) =>
      settle(lease.leaseMs, 'refund', set, key, cost, edgeUs),
    )

  function use(rules: readonly Rule[]): RedisRules {
    for (const rule of rules) check(rule)
    return redisRules(rules)
  }

  const nameOf = (key: string) => `${prefix}:{${escapeName(key)}}`

  function laneOf(key: string): Lane {
    const slot = connection.slotOf(key)
    let lane = lanes.get(slot)
    if (!lane) {
      lane = createLane({ run, runCheck, time: createRedisTime(time), nameOf, carry })
      lanes.set(slot, lane)
    }
    return lane
  }

  /** Carries a row over to our limits; for a look at it, that need not be written. */
  async function carry(first: Call, text: string, trip: Trip): Promise<boolean> {
    const { row, expiresMs } = carriedOver(text, first.set, trip.nowUs)
    const carried = writeRow(row)
    if (isOnlyLooking(first)) {
      settleCalls(first, readView(first, carried || null)!, trip)
      return true
    }
    const name = nameOf(first.key)
    const args = [SWAP, '1', name, text, carried, String(expiresMs)]
    await limited(connection.send(name, 'EVAL', args))
    return false
  }

  /** Makes calls together, once Redis's time is known: without it they would have no deadline. */
  function makeCalls(calls: readonly Call[], timeoutMs: number): void {
    if (time.at(0) !== 0) {
      sendCalls(calls, timeoutMs)
      return
    }
    hello().then(
      () => sendCalls(calls, timeoutMs),
      (error) => {
        for (const call of calls) call.reject(error)
      },
    )
  }

  let greeting: { readonly sinceMs: number; readonly done: Promise<void> } | undefined

  /** Asks for the time. Many ask at once at first; a trip that takes too long is not waited for. */
  function hello(): Promise<void> {
    const sentMs = performance.now()
    if (!greeting || sentMs - greeting.sinceMs > PATIENCE_MS) {
      const name = nameOf('')
      const done = connection
        .send(name, 'EVAL', [HELLO, '1', name])
        .then((nowUs) => time.note(Number(nowUs), sentMs))
      greeting = { sinceMs: sentMs, done }
    }
    return greeting.done
  }

  function sendCalls(calls: readonly Call[], timeoutMs: number): void {
    const nowMs = performance.now()
    if (calls.length === 1) {
      const lane = laneOf(calls[0].key)
      lane.add(calls[0])
      lane.go(nowMs, timeoutMs)
      return
    }
    const lanes = calls.map(({ key }) => laneOf(key))
    for (let i = 0; i < calls.length; i += 1) lanes[i].add(calls[i])
    // The others find nothing in line any more.
    for (const lane of lanes) lane.go(nowMs, timeoutMs)
  }

  /** Does something about a key that is no decision. */
  function settle(
    timeoutMs: number,
    verb: Call['verb'],
    set: RedisRules,
    key: string,
    cost: number,
    more = 0,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const dueMs = performance.now() + timeoutMs
      const call = { verb, set, key, cost, more, dueMs, next: undefined }
      makeCalls([{ ...call, settle: () => resolve(), reject }], timeoutMs)
    })
  }

  function open(timeoutMs: number): AsyncTable {
    const { limited } = createTimeLimit(timeoutMs)

    return {
      use,
      // A node has long ranges of slots, so those in a row fail together.
      partOf: (key) => connection.slotOf(key) >> PART_BITS,
      decideAtOnce(given, key, cost, spend) {
        const set = given as RedisRules
        if (leases?.take(set, key, cost, spend)) return decisionFrom(set, 'lease')
        return spend && denied?.recall(set, key, cost) ? decisionFrom(set, 'cache') : undefined
      },
      decide(requests) {
        if (requests.length === 0) return
        makeCalls(
          requests.map((request) => new DecideCall(request, leases, denied)),
          timeoutMs,
        )
      },
      async charge(set, key, cost) {
        if (cost > 0) await settle(timeoutMs, 'charge', set as RedisRules, key, cost)
      },
      async refund(set, key, cost) {
        await settle(timeoutMs, 'refund', set as RedisRules, key, cost)
        denied?.drop(key)
      },
      async block(key, us) {
        leases?.giveBack(key)
        await settle(timeoutMs, 'block', blockOnly, key, us)
        denied?.drop(key)
      },
      async unblock(key) {
        await settle(timeoutMs, 'unblock', blockOnly, key, 0)
        denied?.drop(key)
      },
      async reset(key) {
        leases?.drop(key)
        await settle(timeoutMs, 'reset', blockOnly, key, 0)
        denied?.drop(key)
      },
      async clear() {
        leases?.drop()
        await removeKeys(connection, prefix, limited)
        denied?.clear()
      },
      keys: () => listKeys(connection, prefix, limited),
      close: async () => leases?.close(),
    }
  }

  return { open, use }
}

function isOnlyLooking(first: Call): boolean {
  for (let call: Call | undefined = first; call; call = call.next) {
    if (call.verb !== 'peek') return false
  }
  return true
}
