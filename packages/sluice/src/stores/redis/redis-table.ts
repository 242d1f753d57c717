import { type Figures, newFigures } from '../../decision.ts'
import type { Rule } from '../../rule.ts'
import type { AsyncTable, RuleSet } from '../store.ts'
import type { Send } from './client.ts'
import { escapeName, escapePattern, unescapeName } from './names.ts'
import type { RedisFigures } from './redis-figures.ts'
import { decodeState, encodeState } from './state-text.ts'

/** RedisRules is a rule set that knows which of its rules keep a state. */
interface RedisRules extends RuleSet {
  readonly stateful: readonly Rule[]
  /** The place of each stateful rule among all. */
  readonly places: readonly number[]
}

type Verb = 'check' | 'peek' | 'charge' | 'refund' | 'block' | 'unblock' | 'reset'

interface Call {
  readonly verb: Verb
  readonly key: string
  /** Units; microseconds for a block. */
  readonly cost: number
  readonly rules: readonly Rule[]
  /** States carried over by the caller: for which rule, from which value, to which. */
  readonly carried: readonly (readonly [number, string, string])[]
}

/** Run runs the script. */
export type Run = (keys: readonly string[], args: readonly string[]) => Promise<unknown>

/** createRedisTable decides by a script; `columns` are all rules that the limiter ever uses. */
export function createRedisTable(
  send: Send,
  run: Run,
  prefix: string,
  figures: RedisFigures,
  check: (rule: Rule) => void,
): AsyncTable {
  const seen = new Map<string, Rule>()
  const nameOf = (key: string, rule = '') => `${prefix}:{${escapeName(key)}}:${escapeName(rule)}`

  function use(rules: readonly Rule[]): RedisRules {
    for (const rule of rules) check(rule)
    const places = rules.flatMap((rule, i) => (rule.algorithm.cells(rule) > 0 ? [i] : []))
    const stateful = places.map((i) => rules[i])
    for (const rule of stateful) seen.set(rule.name, rule)
    return {
      rules: [...rules],
      capacity: Math.min(...rules.map((rule) => rule.capacity)),
      delays: rules.some((rule) => rule.algorithm.delays),
      figures: newFigures(rules.length),
      stateful,
      places,
    }
  }

  /** Makes calls, in one trip unless states have to be carried over, and gives their answers. */
  async function ask(calls: readonly Call[]): Promise<number[][]> {
    const rules = [...new Set(calls.flatMap((call) => call.rules))]
    const numbers = new Map(rules.map((rule, i) => [rule, i + 1]))
    const found = figures.idsOf(rules)
    const ids = found instanceof Promise ? await found : found
    const args = [String(rules.length), ...rules.flatMap((rule, i) => ruleText(rule, ids[i]))]
    const keys: string[] = []
    for (const { verb, key, cost, rules: own, carried } of calls) {
      keys.push(nameOf(key), ...own.map((rule) => nameOf(key, rule.name)))
      args.push(verb, String(cost), String(own.length))
      args.push(...own.map((rule) => String(numbers.get(rule))))
      args.push(String(carried.length), ...carried.flat().map(String))
    }
    const answers = (await run(keys, args)) as (number | string)[][]
    return Promise.all(
      answers.map(async (answer, i) => {
        if (Number(answer[0]) !== -1) return answer.map(Number)
        const [again] = await ask([await carry(calls[i], answer)])
        return again
      }),
    )
  }

  /** The same call, with the states that were written for other figures carried over to these. */
  async function carry(call: Call, [, now, ...values]: (number | string)[]): Promise<Call> {
    const ids = await figures.idsOf(call.rules)
    const carried: [number, string, string][] = []
    for (const [i, value] of values.entries()) {
      if (value === '') continue
      const rule = call.rules[i]
      const { id, cells } = decodeState(String(value), rule)
      const from = (await figures.ruleOf(id, rule)) ?? rule
      rule.algorithm.carry(cells, 0, from, rule, Number(now))
      carried.push([i + 1, String(value), encodeState(ids[i], cells, rule)])
    }
    return { ...call, carried }
  }

  async function one(verb: Verb, key: string, cost: number, rules: readonly Rule[]) {
    await ask([{ verb, key, cost, rules, carried: [] }])
  }

  async function* keys(): AsyncIterable<string> {
    const pattern = `${escapePattern(prefix)}:{*`
    const given = new Set<string>()
    let cursor = '0'
    do {
      const command = ['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000']
      const [next, names] = (await send(prefix, command)) as [string, string[]]
      cursor = String(next)
      for (const name of names) {
        const key = unescapeName(name.slice(prefix.length + 2, name.indexOf('}:', prefix.length)))
        if (!given.has(key)) yield key
        given.add(key)
      }
    } while (cursor !== '0')
  }

  return {
    use,
    async decide(requests) {
      const answers = await ask(
        requests.map(({ set, key, cost, spend }) => ({
          verb: spend ? 'check' : 'peek',
          key,
          cost,
          rules: (set as RedisRules).stateful,
          carried: [],
        })),
      )
      return answers.map((answer, i) => figuresOf(requests[i].set as RedisRules, answer))
    },
    async charge(set, key, cost) {
      if (cost > 0) await one('charge', key, cost, (set as RedisRules).stateful)
    },
    refund: (set, key, cost) => one('refund', key, cost, (set as RedisRules).stateful),
    block: (key, us) => one('block', key, us, []),
    unblock: (key) => one('unblock', key, 0, []),
    reset: (key) => one('reset', key, 0, [...seen.values()]),
    async clear() {
      for await (const key of keys()) await one('reset', key, 0, [...seen.values()])
    },
    keys,
  }
}

function ruleText(rule: Rule, id: number): string[] {
  const { limit, perUs, capacity, aligned, gapUs, gapRest, gapParts, fullUs, fullRest } = rule
  const numbers = [limit, perUs, capacity, Number(aligned), gapUs, gapRest, gapParts, fullUs]
  return [rule.algorithm.name, ...[...numbers, fullRest, id].map(String)]
}

function figuresOf({ rules, places }: RedisRules, answer: readonly number[]): Figures {
  const figures = newFigures(rules.length)
  figures.blockedUs = answer[0]
  figures.remaining.fill(Number.POSITIVE_INFINITY)
  places.forEach((place, i) => {
    const [wait, remaining, reset, delay] = answer.slice(4 * i + 1)
    figures.waitUs[place] = wait
    figures.remaining[place] = remaining
    figures.resetUs[place] = reset
    figures.delayUs[place] = delay
  })
  return figures
}
