import type { RedisStandIn } from 'sluice/testing'
import type { Random } from '../scenario/random.ts'
import type { VirtualTime } from './virtual-time.ts'

/** Outage is a time in which the first `nodes` nodes cannot reach Redis. */
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
  /** When Redis carried out the last answered command, in microseconds. */
  servedUs(): number
}

interface LinkParts {
  readonly time: VirtualTime
  readonly server: RedisStandIn
  readonly random: Random
  /** One-way latency. */
  readonly delayMs: number
  /** The largest random latency added to it. */
  readonly jitterMs: number
  /** The outages of this node. */
  readonly outages: readonly Outage[]
}

/**
 * createLink delivers commands and answers in order, each after a delay. What is in transit during
 * an outage is lost: the sender gets an error only when the outage is over (connection lost).
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

  /** Whether a message is lost now; if so, its sender gets the error later. */
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
