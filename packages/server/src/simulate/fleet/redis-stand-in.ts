import { createHash } from 'node:crypto'
import { type Data, runDecide, runOne, runRegister, runSwap } from './scripts.ts'

type Script = (
  data: Data,
  keys: readonly string[],
  words: readonly string[],
  nowUs: number,
) => unknown

/** What tells a script of `redisStore` apart from its others. */
const scripts: readonly { readonly sign: string; readonly run: Script }[] = [
  { sign: 'cjson.decode(ARGV[2])', run: runDecide },
  { sign: "redis.call('MGET', KEYS[1], KEYS[2])", run: runOne },
  { sign: "redis.call('HEXISTS', KEYS[1]", run: runRegister },
  { sign: "redis.call('GET', key) == ARGV[3 * i - 2]", run: runSwap },
]

/**
 * RedisStandIn answers what `redisStore` sends as a Redis server would, by the algorithms' own code.
 * It knows these commands and scripts and no others. Nothing expires: a state that is fresh decides
 * as none does.
 */
export interface RedisStandIn {
  /** Its answer; an error that Redis would answer with is one. */
  call(command: string, args: readonly string[]): unknown
  /** What it holds now, for `restore`. */
  save(): Data
  /** Goes on from there, as a replica that was promoted does: it knows no script. */
  restore(data: Data): void
}

/** createRedisStandIn makes an empty one, with a clock in microseconds since 1970. */
export function createRedisStandIn(nowUs: () => number): RedisStandIn {
  let data = newData()
  const known = new Map<string, Script>()

  function scriptOf(text: string): Script {
    const found = scripts.find(({ sign }) => text.includes(sign))
    if (!found) throw new Error(`The stand-in does not know this script: ${text}`)
    known.set(createHash('sha1').update(text).digest('hex'), found.run)
    return found.run
  }

  function evaluate(script: Script, [, count, ...rest]: readonly string[]): unknown {
    const keys = Number(count)
    return script(data, rest.slice(0, keys), rest.slice(keys), nowUs())
  }

  return {
    call(command, args) {
      if (command === 'EVALSHA') {
        const script = known.get(args[0])
        if (!script) return new Error('NOSCRIPT No matching script.')
        return evaluate(script, args)
      }
      if (command === 'EVAL') return evaluate(scriptOf(args[0]), args)
      if (command === 'HGET') return data.hashes.get(args[0])?.get(args[1]) ?? null
      throw new Error(`The stand-in does not know the command ${command}.`)
    },
    save: () => copyOf(data),
    restore(saved) {
      data = copyOf(saved)
      known.clear()
    },
  }
}

/** newData is what a server holds that has just started. */
export function newData(): Data {
  return { texts: new Map(), hashes: new Map() }
}

function copyOf({ texts, hashes }: Data): Data {
  return {
    texts: new Map(texts),
    hashes: new Map(Array.from(hashes, ([name, hash]) => [name, new Map(hash)])),
  }
}
