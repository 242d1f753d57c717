import { concurrency } from '../algorithms/concurrency.ts'
import type { Rule } from '../core/rule.ts'
import type { PenaltyOptions } from '../limiter/penalty.ts'
import type { Random } from './random.ts'
import { ruleMakers } from './streams.ts'

/** JointRules are the rules of a random stream of permits. */
export interface JointRules {
  /** The fields of the key; none if it is a string. */
  readonly fields: readonly string[]
  /** The rules of each tier. For keys with fields, they count the first field. */
  readonly tiers: readonly (readonly Rule[])[]
  /** The rules of the other fields, the same for all tiers. */
  readonly others: readonly Rule[]
  readonly penalty: PenaltyOptions | undefined
}

const blocks: PenaltyOptions['block'][] = [
  1,
  [7],
  [10, 333],
  ['1s', '7s', '1m'],
  ['1m', '10m', '1h'],
  [5, 4, 3, 2, 1, 2, 3, 4],
]

/** randomPenalty draws a penalty for one of these fields, or none. */
export function randomPenalty(
  random: Random,
  fields: readonly string[] = [],
): PenaltyOptions | undefined {
  const options = {
    by: fields.length > 0 ? random.pick(fields) : undefined,
    after: random.pick([1, 2, 2, 3, 5]),
    within: random.pick([1, 10, 1_001, 60_000, 3_600_000, 400 * 86_400_000]),
    block: random.pick(blocks),
  }
  return random.below(2) === 0 ? options : undefined
}

const holds = [1, 7, 10, 333, 1_000, 1_001, 60_000, 3_600_000, 400 * 86_400_000]

function holdRule(random: Random, name: string): Rule {
  return concurrency({
    limit: random.pick([1, 2, 3, 5, 10, 100, 10_000_000]),
    hold: random.pick(holds),
    name,
  })
}

/** The fields that rules count besides the first one, `user`, which has the tiers. */
const layouts = [['org'], ['global'], ['org', 'global'], ['org', 'team', 'global']]

/**
 * randomRules draws rules of these algorithms, and of concurrency if `canHold`. The second tier has
 * the same rules with other limits; the third lacks one of them.
 */
export function randomRules(
  random: Random,
  algorithms: readonly string[],
  canHold: boolean,
  hasFields: boolean,
): JointRules {
  const others = hasFields ? random.pick(layouts) : []
  const draw = () => {
    if (canHold && random.below(3) === 0) return (made: string) => holdRule(random, made)
    const make = ruleMakers[random.pick(algorithms)]
    return (made: string) => make(random, made)
  }
  const listOf = (by: string | undefined, least: number) =>
    Array.from({ length: least + random.below(2) }, (_, i) => {
      const name = `${by ?? 'rule'} ${i}`
      const make = draw()
      return () => ({ ...make(name), by })
    })
  const own = listOf(hasFields ? 'user' : undefined, hasFields ? 1 : 2)
  const tiers = [own, own, own.slice(0, Math.max(1, own.length - 1))]
  const fields = hasFields ? ['user', ...others.filter((field) => field !== 'global')] : []
  return {
    fields,
    tiers: tiers.map((tier) => tier.map((make) => make())),
    others: others.flatMap((by) => listOf(by, 1).map((make) => make())),
    penalty: randomPenalty(random, fields),
  }
}
