import type { RedisStandIn } from 'sluice/testing'
import type { Random } from '../scenario/random.ts'
import type { VirtualTime } from './virtual-time.ts'

/** Outage is a time in which nothing passes between Redis and the first so many nodes. */
export interface Outage {
  readonly fromMs: number
  readonly toMs: number
  readonly nodes: number
}

/** Link is the client of one node, as `redisStore` takes it, and its connection. */
export interface Link {
  call(command: string, args: string[]): Promise<unknown>
  /** Commands sent so far. */
  trips(): number
  /** When Redis did what was last answered, in microseconds. */
  servedUs(): number
}

interface LinkParts {
  readonly time: VirtualTime
  readonly server: RedisStandIn
  readonly random: Random
  /** One way. */
  readonly delayMs: number
  /** The most that comes on top, at random. */
  readonly jitterMs: number
  /** Those of this node. */
  readonly outages: readonly Outage[]
}

/**
 * createLink sends commands and answers in order, each after a delay. What is on its way in an outage
 * is lost: its sender hears nothing until the outage is over, and then that the connection was lost.
 */
export function createLink({ time, server, random, delayMs, jitterMs, outages }: LinkParts): Link {
  let trips = 0
  let servedUs = 0
  const lastUs = { there: 0, back: 0 }

  function after(way: 'there' | 'back', task: () => void): void {
    const us = Math.round((delayMs + jitterMs * random.fraction()) * 1_000)
    lastUs[way] = Math.max(lastUs[way], time.nowUs() + us)
    time.at(lastUs[way], task)
  }

  /** Whether it is lost now; if so, its sender will hear of it. */
  function isLost(reject: (error: Error) => void): boolean {
    const nowMs = time.nowUs() / 1_000
    const outage = outages.find(({ fromMs, toMs }) => nowMs >= fromMs && nowMs < toMs)
    if (!outage) return false
    time.at(outage.toMs * 1_000, () => reject(new Error('The connection was lost.')))
    return true
  }

  return {
    call: (command, args) =>
      new Promise((resolve, reject) => {
        trips += 1
        if (isLost(reject)) return
        after('there', () => {
          if (isLost(reject)) return
          const atUs = time.nowUs()
          const answer = server.call(command, args)
          after('back', () => {
            if (isLost(reject)) return
            servedUs = atUs
            if (answer instanceof Error) reject(answer)
            else resolve(answer)
          })
        })
      }),
    trips: () => trips,
    servedUs: () => servedUs,
  }
}
