import { ownTwins } from '../../algorithms/lua/index.ts'
import type { Rule } from '../../core/rule.ts'
import type { Batch, Engine, Found, RowChange } from '../remote/engine.ts'
import { createEngineTime } from '../remote/engine-time.ts'
import type { Connection } from './client.ts'
import { decideArgs, decideScript } from './decide-script.ts'
import { listKeys, removeRows } from './listing.ts'
import { HELLO, runnerOf, swapScript } from './script.ts'
import { slotOfName } from './slots.ts'
import { isTwinned } from './told-rules.ts'

/** 2^PART_BITS consecutive slots count as one part of a Cluster: nodes own long ranges of slots. */
const PART_BITS = 6

/** How long calls share one pending request for the time before they send another. */
const PATIENCE_MS = 20

/**
 * createRedisEngine keeps the rows of one limiter in Redis. Each trip runs one script, which reads
 * the rows, decides and writes. `name` is the name of any row; it routes the request for the time.
 */
export function createRedisEngine(connection: Connection, name: string, clockLine: string): Engine {
  const { send, hasSlots } = connection
  const slotOf = (row: string) => (hasSlots ? slotOfName(row) : 0)
  const time = createEngineTime()
  const twins = new Map<string, string>()
  let decide = runnerOf(send, () => decideScript(twins, clockLine))
  const swap = runnerOf(send, () => swapScript(clockLine))
  let greeting: { readonly sinceMs: number; readonly done: Promise<void> } | undefined

  /** Requests the time before the first trip. Calls that start together share one request. */
  function hello(): Promise<void> {
    const sentMs = performance.now()
    if (!greeting || sentMs - greeting.sinceMs > PATIENCE_MS) {
      const done = send(name, 'EVAL', [HELLO, '1', name]).then((nowUs) =>
        time.note(Number(nowUs), sentMs),
      )
      greeting = { sinceMs: sentMs, done }
    }
    return greeting.done
  }

  async function visitFirst(batch: Batch, untilUs: () => number): Promise<Found> {
    await hello()
    return visit(batch, untilUs)
  }

  async function visit(batch: Batch, untilUs: () => number): Promise<Found> {
    const reply = await decide(decideArgs(batch, untilUs()))
    return foundIn(reply, batch)
  }

  return {
    time,
    decides: isTwinned,
    tellsExpiry: true,
    isRowwise: false,
    hasSlots,
    slotOf,
    partOf: (row) => slotOf(row) >> PART_BITS,
    prepare(rule: Rule): void {
      const { algorithm } = rule
      if (algorithm.lua === '' || algorithm.cells(rule) === 0 || twins.has(algorithm.name)) return
      twins.set(algorithm.name, ownTwins.get(algorithm.lua) ?? algorithm.lua)
      decide = runnerOf(send, () => decideScript(twins, clockLine))
    },
    visit: (batch, untilUs) =>
      time.at(0) === 0 ? visitFirst(batch, untilUs) : visit(batch, untilUs),
    async swap(changes) {
      const answer = await swap(swapArgs(changes))
      if (answer === -1) throw new Error('the store was too busy to be asked in time')
      return answer === 1
    },
    keys: (names, limited) => listKeys(connection, names, limited),
    clear: (names, limited) => removeRows(connection, names, limited),
  }
}

function swapArgs(changes: readonly RowChange[]): string[] {
  const args = [String(changes.length), ...changes.map(({ name }) => name)]
  args.push(String(Math.max(...changes.map(({ untilUs }) => untilUs))))
  for (const { from, to, expiresMs, keepsExpiry } of changes) {
    args.push(from ?? '', to ?? '', `${keepsExpiry ? '+' : ''}${expiresMs}`)
  }
  return args
}

/** Parses a reply: a value per key and the instant, or the instant alone. */
function foundIn(reply: unknown, { names }: Batch): Found {
  if (!Array.isArray(reply) || !(Number(reply[reply.length - 1]) > 0)) throw senseless()
  const nowUs = Number(reply.pop())
  if (reply.length === names.length) return { nowUs, texts: reply as (string | null)[] }
  if (reply.length === 0) return { nowUs, texts: undefined }
  throw senseless()
}

function senseless(): Error {
  return new Error('Redis sent an unexpected reply.')
}
