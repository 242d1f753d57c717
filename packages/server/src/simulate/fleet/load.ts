import { createRandom } from '../scenario/random.ts'
import type { FleetSetup } from './fleet-setup.ts'
import type { VirtualTime } from './virtual-time.ts'

/** In each period, requests trickle in the first part, and come in a burst in the rest. */
const PERIOD_US = 2_000_000
const TRICKLE = { time: 0.9, requests: 0.2 }

/**
 * startLoad makes open-loop requests, for any key and at any node. The instants and keys depend on
 * the seed and the load only, so that fleets can be compared.
 */
export function startLoad(
  { keys, nodes, perSecond, pattern, forMs, seed }: FleetSetup,
  time: VirtualTime,
  request: (key: number, node: number) => void,
): { isOver(): boolean } {
  const random = createRandom(seed)
  const nodeRandom = createRandom(seed + 1)
  const meanUs = 1_000_000 / (perSecond * keys)
  let us = 0
  let isOver = false

  function next(): void {
    us -= Math.log(1 - random.fraction()) * meanUs
    if (us >= forMs * 1_000) {
      isOver = true
      return
    }
    const key = random.below(keys)
    time.at(Math.floor(pattern === 'bursts' ? inBursts(us) : us), () => {
      request(key, nodeRandom.below(nodes))
      next()
    })
  }

  next()
  return { isOver: () => isOver }
}

/** Maps an instant of an even load to its pattern. */
function inBursts(us: number): number {
  const part = (us % PERIOD_US) / PERIOD_US
  const { time, requests } = TRICKLE
  const moved =
    part < requests
      ? (part / requests) * time
      : time + ((part - requests) / (1 - requests)) * (1 - time)
  return us + (moved - part) * PERIOD_US
}
