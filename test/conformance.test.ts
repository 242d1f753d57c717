import fc from 'fast-check'
import { compactStore, memoryStore } from 'sluice'
import { sharedMemoryStore } from 'sluice/shared-memory'
import { type Exercised, manualClock, playStream, ruleMakers, seededRandom } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { randomRules } from '../packages/sluice/src/testing/joint-rules.ts'
import { playJointStream } from '../packages/sluice/src/testing/joint-streams.ts'

/**
 * Random streams drawn by fast-check, so that a failure shrinks to the few steps
 * that matter. The seed is printed; `SLUICE_SEED` plays it again, `SLUICE_STEPS` plays more.
 */
const seed = Number(process.env.SLUICE_SEED ?? Date.now() % 2 ** 31)
const steps = Number(process.env.SLUICE_STEPS ?? 10_000)
const STREAM = 100

// Unbiased choices: the streams themselves seek out boundaries.
const choice = fc.noBias(fc.nat(999))
const step = fc.record({
  verb: choice,
  key: choice,
  cost: choice,
  time: choice,
  offset: choice,
  tier: choice,
})
const stream = fc.array(step, { minLength: STREAM, maxLength: STREAM })
const jointStep = step.chain((made) =>
  fc.record({ permit: choice, end: choice, off: choice }).map((more) => ({ ...made, ...more })),
)
const jointStream = fc.array(jointStep, { minLength: STREAM, maxLength: STREAM })

const stores = [
  { name: 'memory', open: memoryStore, without: [''] },
  { name: 'compact', open: compactStore, without: ['sliding-window-log'] },
  { name: 'shared memory', open: sharedMemoryStore, without: ['sliding-window-log'] },
]

describe.each(stores)('on the $name store', ({ open, without }) => {
  const make = () => {
    const clock = manualClock()
    return { clock, store: open({ clock }) }
  }
  it.each(Object.keys(ruleMakers).filter((algorithm) => !without.includes(algorithm)))(
    `%s equals the reference model on ${steps} steps (seed ${seed})`,
    async (algorithm) => {
      const sum: Exercised = { steps: 0, admitted: 0, refused: 0, boundary: 0 }
      await fc.assert(
        fc.asyncProperty(fc.noBias(fc.nat()), stream, async (ruleSeed, list) => {
          const random = seededRandom(ruleSeed)
          const rule = () => [ruleMakers[algorithm](random)]
          const tally = await playStream(make(), [rule(), rule()], list)
          for (const count of Object.keys(sum) as (keyof Exercised)[]) sum[count] += tally[count]
        }),
        { seed, numRuns: Math.ceil(steps / STREAM) },
      )
      expect(sum.steps).toBeGreaterThanOrEqual(steps)
      expect(sum.admitted / sum.steps).toBeGreaterThan(0.2)
      expect(sum.refused / sum.steps).toBeGreaterThan(0.2)
      expect(sum.boundary / sum.steps).toBeGreaterThan(0.1)
    },
    60_000 + steps,
  )

  it.each([false, true])(
    `permits equal the model on ${steps / 10} steps (seed ${seed}), with fields: %o`,
    async (hasFields) => {
      const known = Object.keys(ruleMakers).filter((algorithm) => !without.includes(algorithm))
      // Shared memory spends from one field after the other.
      const isInTurn = hasFields && open === sharedMemoryStore
      const algorithms = known.filter((name) => !isInTurn || name !== 'leaky-bucket')
      await fc.assert(
        fc.asyncProperty(fc.noBias(fc.nat()), jointStream, async (ruleSeed, list) => {
          const rules = randomRules(seededRandom(ruleSeed), algorithms, true, hasFields)
          const clock = manualClock()
          const room = open === sharedMemoryStore ? { maxKeys: 1_000, maxBytes: 2 ** 24 } : {}
          await playJointStream({ clock, store: open({ clock, ...room }) }, rules, list)
        }),
        { seed, numRuns: Math.ceil(steps / 10 / STREAM) },
      )
    },
    60_000 + steps,
  )
})
