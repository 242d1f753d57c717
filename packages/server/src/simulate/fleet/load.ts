import type { FleetSetup } from './fleet-setup.ts'
import { createRandom } from './random.ts'
import type { VirtualTime } from './virtual-time.ts'

/** How long a burst and the pause after it take together, and the part that is the burst. */
const BURST_PERIOD_US = 2_000_000
const BURST_PART = 1 / 4

/**
 * startLoad makes requests that wait for nothing, for any key and at any node. The instants and keys
 * depend on the seed and the load alone, so that fleets can be compared.
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
    time.at(Math.floor(pattern === 'bursts' ? inBurst(us) : us), () => {
      request(key, nodeRandom.below(nodes))
      next()
    })
  }

  next()
  return { isOver: () => isOver }
}

function inBurst(us: number): number {
  const pastUs = us % BURST_PERIOD_US
  return us - pastUs + pastUs * BURST_PART
}
