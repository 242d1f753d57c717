import type { Rule } from '../../core/rule.ts'
import { createTimeLimit } from '../../failure/time-limit.ts'
import type { AsyncTable } from '../store.ts'
import { type Call, settleCalls, type Trip } from './batch.ts'
import type { Connection } from './client.ts'
import { DecideCall, decisionFrom } from './decide-call.ts'
import { createDenyCache, type DenyCacheOptions } from './deny-cache.ts'
import { createLane, type Lane, type LaneParts } from './lane.ts'
import { createLeases, type LeaseOptions } from './leases.ts'
import { listKeys, removeKeys } from './listing.ts'
import { escapeName } from './names.ts'
import type { RedisFigures } from './redis-figures.ts'
import { createRedisTime, type RedisTime } from './redis-time.ts'
import { type RedisRules, redisRules, setJson } from './rule-set.ts'
import { swapScript } from './script.ts'
import { idOf as idIn, readState, writeState } from './state-text.ts'
import type { View } from './view.ts'

/** RedisTable is the table of one limiter name; each limiter opens it with its own timeout. */
export interface RedisTable {
  open(timeoutMs: number): AsyncTable
  use(rules: readonly Rule[]): RedisRules
}

/** Slots in a row that are one part of a Cluster: 64 of 16,384. */
const PART_BITS = 6

/** The longest that a trip may take by which states are carried over. */
const CARRY_MS = 1_000

export interface TableParts {
  readonly connection: Connection
  /** What the names of all keys begin with. */
  readonly prefix: string
  readonly figures: RedisFigures
  /** What the registry has told of Redis's clock: a first guess for every slot. */
  readonly time: RedisTime
  readonly run: LaneParts['run']
  readonly runOne: LaneParts['runOne']
  /** Throws if a rule cannot be kept here. */
  check(rule: Rule): void
  readonly denyCache: Required<DenyCacheOptions> | undefined
  readonly lease: Required<LeaseOptions> | undefined
}

export function createRedisTable({
  connection,
  prefix,
  figures,
  time,
  run,
  runOne,
  check,
  denyCache,
  lease,
}: TableParts): RedisTable {
  const seen = new Map<string, Rule>()
  /** The first algorithm of each rule name. */
  const algorithms = new Map<string, string>()
  const lanes = new Map<number, Lane>()
  const jsons = new WeakMap<RedisRules, { version: number; json: string }>()
  const { limited } = createTimeLimit(CARRY_MS)
  const blockOnly = redisRules([], () => '')
  const denied = denyCache && createDenyCache(denyCache)
  const leases =
    lease &&
    createLeases(lease, (set, key, cost, edgeUs) =>
      settle(lease.leaseMs, 'refund', set, key, cost, edgeUs),
    )

  function use(rules: readonly Rule[]): RedisRules {
    for (const rule of rules) check(rule)
    const set = redisRules(rules, endingOf)
    set.stateful.forEach((rule, i) => {
      seen.set(set.endings[i], rule)
    })
    return set
  }

  /**
   * What names of a rule's states end with. A rule of the same name and another algorithm has states
   * of its own.
   */
  function endingOf({ name, algorithm }: Rule): string {
    const first = algorithms.get(name) ?? algorithm.name
    algorithms.set(name, first)
    return first === algorithm.name ? escapeName(name) : `${escapeName(name)}:${algorithm.name}`
  }

  const startOf = (key: string) => `${prefix}:{${escapeName(key)}}:`
  const idOf = (rule: Rule) => figures.idOf(rule)!

  /** Made anew only when numbers may have changed. */
  function jsonOf(set: RedisRules): string {
    const made = jsons.get(set)
    if (made?.version === figures.version()) return made.json
    const json = setJson(set, set.stateful.map(idOf))
    jsons.set(set, { version: figures.version(), json })
    return json
  }

  function laneOf(key: string): Lane {
    const slot = connection.slotOf(key)
    let lane = lanes.get(slot)
    if (!lane) {
      lane = createLane({ run, runOne, time: createRedisTime(time), startOf, idOf, jsonOf, carry })
      lanes.set(slot, lane)
    }
    return lane
  }

  /** Carries states over to our figures; for a look at them, they need not be written. */
  async function carry(first: Call, view: View, texts: readonly (string | null)[], trip: Trip) {
    const { set, key } = first
    const names: string[] = []
    const words: string[] = []
    for (const [i, rule] of set.stateful.entries()) {
      const text = texts[i]
      if (text === null || idIn(text) === idOf(rule)) continue
      const from = await limited(figures.ruleOf(idIn(text), rule))
      // What nobody can read, or was another algorithm's, is as good as nothing.
      if (from) rule.algorithm.carry(view.states[i], 0, from, rule, trip.nowUs)
      else view.states[i] = readState(null, rule, view.states[i])
      const freshMs = Math.ceil(rule.algorithm.freshAtUs(view.states[i], 0, rule) / 1_000)
      names.push(startOf(key) + set.endings[i])
      words.push(text, writeState(idOf(rule), view.states[i], rule), String(Math.max(1, freshMs)))
    }
    if (isOnlyLooking(first)) {
      settleCalls(first, view, trip)
      return true
    }
    const args = [swapScript, String(names.length), ...names, ...words]
    await limited(connection.send(names[0], 'EVAL', args))
    return false
  }

  /** Makes calls together, once the numbers of their figures are known. */
  function makeCalls(calls: readonly Call[], timeoutMs: number): void {
    // Without Redis's time a call would have no deadline.
    if (time.at(0) !== 0 && calls.every(isKnown)) {
      sendCalls(calls, timeoutMs)
      return
    }
    const rules = calls.flatMap(({ set }) => set.stateful)
    figures.learn(rules.filter((rule) => figures.idOf(rule) === undefined)).then(
      () => sendCalls(calls, timeoutMs),
      (error) => {
        for (const call of calls) call.reject(error)
      },
    )
  }

  /** Whether the figures of a call's rules have numbers. */
  function isKnown({ set }: Call): boolean {
    for (const rule of set.stateful) if (figures.idOf(rule) === undefined) return false
    return true
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
        await settle(timeoutMs, 'reset', redisRules([...seen.values()], endingOf), key, 0)
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
