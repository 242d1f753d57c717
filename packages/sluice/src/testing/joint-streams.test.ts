import { describe, expect, it } from 'vitest'
import { compactStore, concurrency, memoryStore, type Store } from '../index.ts'
import { sharedMemoryStore } from '../stores/shared-memory/shared-memory.ts'
import { randomRules } from './joint-rules.ts'
import { playJointStream, randomJointSteps } from './joint-streams.ts'
import { type ManualClock, manualClock } from './manual-clock.ts'
import { seededRandom } from './random.ts'
import { ruleMakers } from './streams.ts'

const makers: Record<string, (clock: ManualClock) => Store> = {
  memoryStore: (clock) => memoryStore({ clock }),
  compactStore: (clock) => compactStore({ clock }),
  sharedMemoryStore: (clock) => sharedMemoryStore({ clock, maxKeys: 1_000, maxBytes: 2 ** 24 }),
}

/** Creates a clock that steps back by up to a day after each reading. */
function steppingClock(seed: number): { readonly clock: ManualClock; readonly told: ManualClock } {
  const clock = manualClock()
  const random = seededRandom(seed)
  let latestUs = 0
  const nowUs = () => {
    const us = clock.nowUs()
    if (us > latestUs) {
      latestUs = us
      return us
    }
    return us - random.pick([0, 1, 1_000, 86_400_000_000])
  }
  return { clock, told: { ...clock, nowUs } }
}

describe.each(Object.entries(makers))('on a %s whose clock steps back', (name, make) => {
  it.each([false, true])('permits equal the model, with fields: %o', async (hasFields) => {
    const algorithms = Object.keys(ruleMakers).filter(
      (each) => !['sliding-window-log', 'leaky-bucket'].includes(each),
    )
    const played = { admitted: 0, refused: 0 }
    for (let seed = 0; seed < 10; seed += 1) {
      const random = seededRandom(seed)
      const rules = randomRules(random, algorithms, true, hasFields)
      const { clock, told } = steppingClock(seed)
      const made = { clock, store: make(told) }
      const tally = await playJointStream(made, rules, randomJointSteps(random, 150))
      played.admitted += tally.admitted
      played.refused += tally.refused
    }
    expect(Math.min(played.admitted, played.refused), name).toBeGreaterThan(150)
  })
})

describe('the arithmetic of concurrency', () => {
  it('adds no units when nowUs steps back in direct calls', () => {
    const rule = concurrency({ limit: 3, hold: '8s' })
    const { waitUs, spend, remaining } = rule.algorithm
    const cells = new Float64Array(7)
    const nowUs = 1_767_225_600_123_456
    spend(cells, 0, rule, 3, nowUs)
    for (const back of [0, 1, 2_000_000, 10_000_000, 100_000_000]) {
      expect(waitUs(cells, 0, rule, 1, nowUs - back)).toBeGreaterThan(8_000_000)
      expect(remaining(cells, 0, rule, nowUs - back)).toBe(0)
    }
  })
})
