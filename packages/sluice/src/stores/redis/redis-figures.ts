import type { Algorithm } from '../../algorithms/algorithm.ts'
import { defineRule, type Rule } from '../../rule.ts'
import type { Send } from './client.ts'

/** Gives each text a number, from 1 up, the same for everybody. */
const register = `
local ids = {}
for i, text in ipairs(ARGV) do
  local id = redis.call('HGET', KEYS[1], text)
  if not id then
    id = redis.call('HLEN', KEYS[1]) / 2 + 1
    redis.call('HSET', KEYS[1], text, id, 'id ' .. id, text)
  end
  ids[i] = tonumber(id)
end
return ids
`

/**
 * RedisFigures numbers the figures that states are written for, in a hash that all nodes share, so
 * that any of them knows for which figures another one wrote a state.
 */
export interface RedisFigures {
  /** The numbers of these rules' figures: known, or a promise of them. */
  idsOf(rules: readonly Rule[]): readonly number[] | Promise<readonly number[]>
  /** A rule of that algorithm with the figures of that number; undefined if nobody knows them. */
  ruleOf(id: number, like: Rule): Promise<Rule | undefined>
}

export function createRedisFigures(send: Send, key: string): RedisFigures {
  const ids = new WeakMap<Rule, number>()

  async function ask(rules: readonly Rule[]): Promise<readonly number[]> {
    const command = ['EVAL', register, '1', key, ...rules.map(textOf)]
    const found = ((await send(key, command)) as (string | number)[]).map(Number)
    found.forEach((id, i) => {
      ids.set(rules[i], id)
    })
    return found
  }

  return {
    idsOf: (rules) =>
      rules.every((rule) => ids.has(rule)) ? rules.map((rule) => ids.get(rule)!) : ask(rules),
    async ruleOf(id, like) {
      const text = await send(key, ['HGET', key, `id ${id}`])
      return typeof text === 'string' ? ruleFrom(text, like.algorithm, like.name) : undefined
    },
  }
}

function textOf({ algorithm, limit, perUs, capacity, aligned }: Rule): string {
  return [algorithm.name, limit, perUs, capacity, Number(aligned)].join(' ')
}

function ruleFrom(text: string, algorithm: Algorithm, name: string): Rule | undefined {
  const [of, limit, perUs, capacity, aligned] = text.split(' ')
  if (of !== algorithm.name) return undefined
  const options = { limit: Number(limit), per: Number(perUs) / 1_000, name }
  return defineRule(algorithm, options, { capacity: Number(capacity), aligned: aligned === '1' })
}
