import { fieldCases } from './field-cases.ts'
import { holdCases } from './hold-cases.ts'
import { randomRules } from './joint-rules.ts'
import { playJointStream, randomJointSteps } from './joint-streams.ts'
import { seededRandom } from './random.ts'
import type { MakeStore, StoreCase, SuiteCase } from './store-suite.ts'
import { ruleMakers } from './streams.ts'

/** JointOptions describe the store and the length of the streams. */
export interface JointOptions {
  readonly seed: number
  readonly steps: number
  readonly without: readonly string[]
  readonly fields: boolean | 'in turn'
  readonly clears: boolean
}

/** Steps per stream. Each stream has its own rules and a new store. */
const STREAM_STEPS = 125

/** jointCases check permits, and decisions over several fields of a key. */
export function jointCases(
  make: MakeStore,
  { seed, steps, without, fields, clears }: JointOptions,
): SuiteCase[] {
  const onOneStore = ({ name, run }: StoreCase): SuiteCase => ({
    name,
    run: async () => run(await make()),
  })
  const canHold = !without.includes('concurrency')
  const known = Object.keys(ruleMakers).filter((name) => !without.includes(name))
  const inTurn = known.filter((name) => fields !== 'in turn' || name !== 'leaky-bucket')
  // A step here makes more calls than a step with a single rule.
  const count = Math.ceil(steps / 4)

  async function streams(algorithms: readonly string[], hasFields: boolean): Promise<void> {
    const random = seededRandom(seed)
    for (let played = 0; played < count; played += STREAM_STEPS) {
      const rules = randomRules(random, algorithms, canHold, hasFields)
      await playJointStream(await make(), rules, randomJointSteps(random, STREAM_STEPS))
    }
  }

  return [
    ...(canHold ? holdCases(clears).map(onOneStore) : []),
    {
      name: `permits equal the model on ${count} random steps (seed ${seed})`,
      run: () => streams(known, false),
    },
    ...(fields && canHold ? fieldCases.map(onOneStore) : []),
    ...(fields
      ? [
          {
            name: `rules of several fields equal the model on ${count} random steps (seed ${seed})`,
            run: () => streams(inTurn, true),
          },
        ]
      : []),
  ]
}
