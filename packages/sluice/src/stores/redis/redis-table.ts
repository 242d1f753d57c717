import type { Figures } from '../../decision.ts'
import type { Rule } from '../../rule.ts'
import { createTimeLimit } from '../../time-limit.ts'
import type { AsyncTable, TableRequest } from '../store.ts'
import type { Answer, Call, Found, Group } from './batch.ts'
import { settleGroup } from './batch.ts'
import type { Connection } from './client.ts'
import { createDenyCache, type DenyCacheOptions } from './deny-cache.ts'
import { createLane, type Lane, type LaneParts } from './lane.ts'
import { createLeases, type LeaseOptions } from './leases.ts'
import { escapeName, escapePattern, unescapeName } from './names.ts'
import type { RedisFigures } from './redis-figures.ts'
import { createRedisTime, type RedisTime } from './redis-time.ts'
import { type RedisRules, redisRules } from './rule-set.ts'
import { swapScript } from './script.ts'
import { encodeState } from './state-text.ts'

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
  const blockOnly = redisRules([])
  const denied = denyCache && createDenyCache(denyCache)
  const leases =
    lease &&
    createLeases(lease, (set, key, cost, edgeUs) =>
      ask(lease.leaseMs, 'refund', set, key, cost, edgeUs),
    )

  function use(rules: readonly Rule[]): RedisRules {
    for (const rule of rules) check(rule)
    const set = redisRules(rules)
    for (const rule of set.stateful) seen.set(rule.name, rule)
    return set
  }

  function namesOf(key: string, { endings }: RedisRules): string[] {
    const start = `${prefix}:{${escapeName(key)}}:`
    return [start, ...endings.map((ending) => start + ending)]
  }

  const idOf = (rule: Rule) => figures.idOf(rule)!

  function laneOf(key: string): Lane {
    const slot = connection.slotOf(escapeName(key))
    let lane = lanes.get(slot)
    if (!lane) {
      lane = createLane({
        run,
        time: createRedisTime(time),
        namesOf,
        idOf,
        carry,
      })
      lanes.set(slot, lane)
    }
    return lane
  }

  /** Carries states over to our figures; for a look at them, they need not be written. */
  async function carry(group: Group, found: Found, nowUs: number, sentMs: number) {
    const { view, texts, ids } = found
    const names: string[] = []
    const words: string[] = []
    for (const [i, rule] of group.set.stateful.entries()) {
      const text = texts[i]
      if (text === null || ids[i] === idOf(rule)) continue
      const from = (await figures.ruleOf(ids[i], rule)) ?? rule
      const state = view.states[i]
      rule.algorithm.carry(state, 0, from, rule, nowUs)
      const freshMs = Math.ceil(rule.algorithm.freshAtUs(state, 0, rule) / 1_000)
      names.push(group.names[i + 1])
      words.push(text, encodeState(idOf(rule), state, rule), String(Math.max(1, freshMs)))
    }
    if (group.calls.every(({ verb }) => verb === 'peek')) {
      settleGroup(group, view, nowUs, sentMs)
      return []
    }
    await connection.send(names[0], ['EVAL', swapScript, String(names.length), ...names, ...words])
    return group.calls
  }

  function ask(
    timeoutMs: number,
    verb: Call['verb'],
    set: RedisRules,
    key: string,
    cost: number,
    more = 0,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const askedMs = performance.now()
      const call = { verb, set, key, cost, more, askedMs, timeoutMs, resolve, reject }
      if (set.stateful.every((rule) => figures.idOf(rule) !== undefined)) laneOf(key).ask(call)
      else figures.learn(set.stateful).then(() => laneOf(key).ask(call), reject)
    })
  }

  function open(timeoutMs: number): AsyncTable {
    const limited = createTimeLimit(timeoutMs)

    const settle = async (verb: Call['verb'], set: RedisRules, key: string, cost: number) => {
      await ask(timeoutMs, verb, set, key, cost)
    }

    async function decide({ set: given, key, cost, spend }: TableRequest): Promise<Figures> {
      const set = given as RedisRules
      if (!spend) return (await ask(timeoutMs, 'peek', set, key, cost)).figures
      const wanted = leases?.wish(set, key, cost) ?? 0
      let answer: Answer | undefined
      try {
        answer = await ask(timeoutMs, wanted > 0 ? 'lease' : 'check', set, key, cost, wanted)
      } finally {
        leases?.note(key, wanted, answer)
      }
      denied?.note(key, cost, answer)
      return answer.figures
    }

    return {
      use,
      decideAtOnce({ set: given, key, cost, spend }) {
        const set = given as RedisRules
        const figures = leases?.take(set, key, cost, spend)
        return figures ?? (spend ? denied?.recall(set, key, cost) : undefined)
      },
      decide: (requests) => Promise.all(requests.map(decide)),
      async charge(set, key, cost) {
        if (cost > 0) await settle('charge', set as RedisRules, key, cost)
      },
      async refund(set, key, cost) {
        await settle('refund', set as RedisRules, key, cost)
        denied?.drop(key)
      },
      async block(key, us) {
        leases?.giveBack(key)
        await settle('block', blockOnly, key, us)
      },
      async unblock(key) {
        await settle('unblock', blockOnly, key, 0)
        denied?.drop(key)
      },
      async reset(key) {
        leases?.drop(key)
        await settle('reset', redisRules([...seen.values()]), key, 0)
        denied?.drop(key)
      },
      async clear() {
        leases?.drop()
        for await (const { names } of pages()) {
          for (const some of bySlot(names)) {
            await limited(connection.send(some[0], ['UNLINK', ...some]))
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
          const command = ['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000']
          const [next, names] = (await limited(send(prefix, command))) as [unknown, string[]]
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
      const slot = connection.slotOf(tagOf(name))
      slots.set(slot, [...(slots.get(slot) ?? []), name])
    }
    return [...slots.values()]
  }

  return { open, use }
}
