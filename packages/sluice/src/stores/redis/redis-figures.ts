import type { Algorithm } from '../../core/algorithm.ts'
import { readRule } from '../../core/read-rule.ts'
import type { Rule } from '../../core/rule.ts'
import type { Send } from './client.ts'
import type { RedisTime } from './redis-time.ts'

/**
 * Gives each text a number, the same for everybody: the one it has, the one it would like, or the
 * next that is free. Numbers up to 999 fit into a state of one cell.
 */
const register = `
if string.format('%d', 2 ^ 53) ~= '9007199254740992' then
  return redis.error_reply('ERR Sluice needs a 64-bit Redis')
end
local answer = {}
for i = 1, #ARGV, 2 do
  local text, id = ARGV[i], tonumber(ARGV[i + 1])
  local known = redis.call('HGET', KEYS[1], text)
  if not known then
    local tries = 0
    while redis.call('HEXISTS', KEYS[1], 'id ' .. id) == 1 do
      tries = tries + 1
      id = tries < 999 and id % 999 + 1 or 999 + tries
    end
    redis.call('HSET', KEYS[1], text, id, 'id ' .. id, text)
  end
  answer[#answer + 1] = known and tonumber(known) or id
end
local time = redis.call('TIME')
answer[#answer + 1] = time[1] * 1000000 + time[2]
return answer
`

/**
 * RedisFigures numbers the figures that states are written for, in a hash that all nodes share, so
 * that any of them knows for which figures another one wrote a state.
 */
export interface RedisFigures {
  /** The number of a rule's figures; undefined if it has to be learnt first. */
  idOf(rule: Rule): string | undefined
  /** Learns the numbers of these rules' figures. */
  learn(rules: readonly Rule[]): Promise<void>
  /** Goes up whenever numbers may have changed. */
  version(): number
  /** Redis may have forgotten everything: it is told again what we know. */
  renew(): Promise<void>
  /** A rule of that algorithm with the figures of that number; undefined if nobody knows them. */
  ruleOf(id: string, like: Rule): Promise<Rule | undefined>
}

/** How long others wait for a trip that one has made. */
const PATIENCE_MS = 20

/** Figures as a text, and their number once it is known. */
interface Numbered {
  readonly text: string
  id: string | undefined
}

export function createRedisFigures(send: Send, key: string, time: RedisTime): RedisFigures {
  const all = new Map<string, Numbered>()
  const ofRule = new WeakMap<Rule, Numbered>()
  let version = 0
  let learning: { texts: string; sinceMs: number; done: Promise<void> } | undefined

  async function ask(wanted: readonly Numbered[]): Promise<void> {
    const sentMs = performance.now()
    const words = wanted.flatMap(({ text, id }) => [text, String(Number(id ?? wish(text)))])
    const reply = (await send(key, 'EVAL', [register, '1', key, ...words])) as unknown[]
    time.note(Number(reply[wanted.length]), sentMs)
    version += 1
    wanted.forEach((each, i) => {
      each.id = String(reply[i]).padStart(3, '0')
    })
  }

  function numberedOf(rule: Rule): Numbered {
    const { text } = rule
    const numbered = all.get(text) ?? { text, id: undefined }
    all.set(text, numbered)
    ofRule.set(rule, numbered)
    return numbered
  }

  /** Many ask at once at first; a trip that takes too long is not waited for. */
  function learn(rules: readonly Rule[]): Promise<void> {
    const wanted = [...new Set(rules.map(numberedOf))]
    const texts = wanted.map(({ text }) => text).join()
    const nowMs = performance.now()
    if (learning?.texts !== texts || nowMs - learning.sinceMs > PATIENCE_MS) {
      learning = { texts, sinceMs: nowMs, done: ask(wanted) }
    }
    return learning.done
  }

  async function renew(): Promise<void> {
    const known = [...all.values()].filter(({ id }) => id !== undefined)
    if (known.length > 0) await ask(known)
  }

  return {
    idOf: (rule) => ofRule.get(rule)?.id,
    learn,
    version: () => version,
    renew,
    async ruleOf(id, like) {
      for (const known of all.values()) {
        if (known.id === id) return ruleFrom(known.text, like.algorithm, like.name)
      }
      const text = await send(key, 'HGET', [key, `id ${Number(id)}`])
      if (typeof text === 'string') return ruleFrom(text, like.algorithm, like.name)
      await renew()
      return undefined
    },
  }
}

/** The number that a text would like to have: nearly always its own, even if Redis forgets. */
function wish(text: string): number {
  let hash = 0
  for (let i = 0; i < text.length; i += 1) hash = (hash * 31 + text.charCodeAt(i)) % 65_521
  return (hash % 999) + 1
}

/** The rule of a text, if it is of this algorithm. */
function ruleFrom(text: string, algorithm: Algorithm, name: string): Rule | undefined {
  try {
    return readRule(text, [algorithm], name)
  } catch {
    return undefined
  }
}
