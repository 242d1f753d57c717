import { type Decision, decisionOf, type Source } from '../../decision.ts'
import type { Rule } from '../../rule.ts'
import { createTimeLimit } from '../../time-limit.ts'
import type { AsyncTable, TableRequest } from '../store.ts'
import { type Call, settleCalls, type Trip } from './batch.ts'
import type { Connection } from './client.ts'
import { createDenyCache, type DenyCache, type DenyCacheOptions } from './deny-cache.ts'
import { createLane, type Lane, type LaneParts } from './lane.ts'
import { createLeases, type LeaseOptions, type Leases } from './leases.ts'
import { escapeName, escapePattern, unescapeName } from './names.ts'
import type { RedisFigures } from './redis-figures.ts'
import { createRedisTime, type RedisTime } from './redis-time.ts'
import { type RedisRules, redisRules, setJson } from './rule-set.ts'
import { swapScript } from './script.ts'
import { idOf as idIn, writeState } from './state-text.ts'
import type { View } from './view.ts'

/** RedisTable is the table of one limiter name; each limiter opens it with its own timeout. */
export interface RedisTable {
  open(timeoutMs: number): AsyncTable
  use(rules: readonly Rule[]): RedisRules
}

export interface TableParts {
  readonly connection: Connection
  /** What the names of all keys begin with. */
  readonly prefix: string
  readonly figures: RedisFigures
  /** What the registry has told of Redis's clock: a first guess for every slot. */
  readonly time: RedisTime
  readonly run: LaneParts['run']
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
  check,
  denyCache,
  lease,
}: TableParts): RedisTable {
  const seen = new Map<string, Rule>()
  const lanes = new Map<number, Lane>()
  const jsons = new WeakMap<RedisRules, { version: number; json: string }>()
  const blockOnly = redisRules([])
  const denied = denyCache && createDenyCache(denyCache)
  const leases =
    lease &&
    createLeases(lease, (set, key, cost, edgeUs) =>
      settle(lease.leaseMs, 'refund', set, key, cost, edgeUs),
    )

  function use(rules: readonly Rule[]): RedisRules {
    for (const rule of rules) check(rule)
    const set = redisRules(rules)
    for (const rule of set.stateful) seen.set(rule.name, rule)
    return set
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
      lane = createLane({ run, time: createRedisTime(time), startOf, idOf, jsonOf, carry })
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
      const from = (await figures.ruleOf(idIn(text), rule)) ?? rule
      rule.algorithm.carry(view.states[i], 0, from, rule, trip.nowUs)
      const freshMs = Math.ceil(rule.algorithm.freshAtUs(view.states[i], 0, rule) / 1_000)
      names.push(startOf(key) + set.endings[i])
      words.push(text, writeState(idOf(rule), view.states[i], rule), String(Math.max(1, freshMs)))
    }
    if (isOnlyLooking(first)) {
      settleCalls(first, view, trip)
      return true
    }
    await connection.send(names[0], 'EVAL', [swapScript, String(names.length), ...names, ...words])
    return false
  }

  /** Makes calls together, once the numbers of their figures are known. */
  function makeCalls(calls: readonly Call[]): void {
    const unknown = unknownOf(calls)
    if (unknown.length === 0) {
      sendCalls(calls)
      return
    }
    figures.learn(unknown).then(
      () => sendCalls(calls),
      (error) => {
        for (const call of calls) call.reject(error)
      },
    )
  }

  /** The rules of these calls whose figures have no number yet. */
  function unknownOf(calls: readonly Call[]): Rule[] {
    const unknown: Rule[] = []
    for (const { set } of calls) {
      for (const rule of set.stateful) if (figures.idOf(rule) === undefined) unknown.push(rule)
    }
    return unknown
  }

  function sendCalls(calls: readonly Call[]): void {
    const nowMs = performance.now()
    const lanes = calls.map(({ key }) => laneOf(key))
    for (let i = 0; i < calls.length; i += 1) lanes[i].add(calls[i])
    // The others find nothing in line any more.
    for (const lane of lanes) lane.go(nowMs, calls[0].timeoutMs)
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
      const askedMs = performance.now()
      const call = { verb, set, key, cost, more, askedMs, timeoutMs, next: undefined }
      makeCalls([{ ...call, settle: () => resolve(), reject }])
    })
  }

  function open(timeoutMs: number): AsyncTable {
    const { limited } = createTimeLimit(timeoutMs)

    return {
      use,
      decideAtOnce(given, key, cost, spend) {
        const set = given as RedisRules
        if (leases?.take(set, key, cost, spend)) return decisionFrom(set, 'lease')
        return spend && denied?.recall(set, key, cost) ? decisionFrom(set, 'cache') : undefined
      },
      decide(requests) {
        if (requests.length === 0) return
        makeCalls(requests.map((request) => new Decide(request, timeoutMs, leases, denied)))
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
      },
      async unblock(key) {
        await settle(timeoutMs, 'unblock', blockOnly, key, 0)
        denied?.drop(key)
      },
      async reset(key) {
        leases?.drop(key)
        await settle(timeoutMs, 'reset', redisRules([...seen.values()]), key, 0)
        denied?.drop(key)
      },
      async clear() {
        leases?.drop()
        for await (const { names } of pages()) {
          for (const some of bySlot(names)) {
            await limited(connection.send(some[0], 'UNLINK', some))
          }
        }
        denied?.clear()
      },
      async *keys() {
        const given = new Set<string>()
        for await (const { names } of pages()) {
          const keys = new Set(names.map(keyOf))
          const page = [...keys].filter((key) => !given.has(key))
          for (const key of page) given.add(key)
          yield page
        }
      },
      close: async () => leases?.close(),
    }

    /** The names of all keys in Redis, a thousand at a time. */
    async function* pages(): AsyncIterable<{ names: string[] }> {
      const pattern = `${escapePattern(prefix)}:{*`
      for (const send of await limited(connection.masters())) {
        let cursor = '0'
        do {
          const words = [cursor, 'MATCH', pattern, 'COUNT', '1000']
          const [next, names] = (await limited(send(prefix, 'SCAN', words))) as [unknown, string[]]
          cursor = String(next)
          yield { names }
        } while (cursor !== '0')
      }
    }
  }

  /** The escaped key in a name. */
  const tagOf = (name: string) => name.slice(prefix.length + 2, name.indexOf('}:', prefix.length))
  const keyOf = (name: string) => unescapeName(tagOf(name))

  function bySlot(names: readonly string[]): string[][] {
    const slots = new Map<number, string[]>()
    for (const name of names) {
      const slot = connection.slotOf(keyOf(name))
      slots.set(slot, [...(slots.get(slot) ?? []), name])
    }
    return [...slots.values()]
  }

  return { open, use }
}

/** Decide is the call of a decision. A class, since there is one for every decision. */
class Decide implements Call {
  readonly verb: 'check' | 'peek' | 'lease'
  readonly set: RedisRules
  readonly key: string
  readonly cost: number
  readonly more: number
  readonly askedMs = performance.now()
  readonly timeoutMs: number
  readonly request: TableRequest
  readonly leases: Leases | undefined
  readonly denied: DenyCache | undefined
  next: Call | undefined = undefined

  constructor(
    request: TableRequest,
    timeoutMs: number,
    leases: Leases | undefined,
    denied: DenyCache | undefined,
  ) {
    this.request = request
    this.set = request.set as RedisRules
    this.key = request.key
    this.cost = request.cost
    this.more = request.spend && leases ? leases.wish(this.set, this.key, this.cost) : 0
    this.verb = this.more > 0 ? 'lease' : request.spend ? 'check' : 'peek'
    this.timeoutMs = timeoutMs
    this.leases = leases
    this.denied = denied
  }

  settle(view: View, leased: number, trip: Trip): void {
    const { set, key, cost, leases, denied, request } = this
    const decision = decisionOf(set.rules, set.figures)
    if (this.more > 0) {
      leases?.ended(key)
      leases?.note(set, key, leased, view, trip)
    }
    if (denied && request.spend && !decision.allowed) {
      denied.note(set, key, cost, view, trip, decision.retryAfterMs)
    }
    request.decided(decision)
  }

  reject(error: unknown): void {
    if (this.more > 0) this.leases?.ended(this.key)
    this.request.failed(error)
  }
}

/** A decision by the set's figures that was made without a trip. */
function decisionFrom({ rules, figures }: RedisRules, source: Source): Decision {
  figures.source = source
  const decision = decisionOf(rules, figures)
  figures.source = 'store'
  return decision
}

function isOnlyLooking(first: Call): boolean {
  for (let call: Call | undefined = first; call; call = call.next) {
    if (call.verb !== 'peek') return false
  }
  return true
}
