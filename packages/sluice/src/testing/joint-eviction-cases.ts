import { concurrency } from '../algorithms/concurrency.ts'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import type { Rule } from '../core/rule.ts'
import type { Permit } from '../limiter/permit.ts'
import { createPolicy } from '../limiter/policy.ts'
import { equal } from './equal.ts'
import { limiterOn } from './limiter-on.ts'
import { createModel } from './model.ts'
import type { ModelKey } from './model-counters.ts'
import type { ModelPermit } from './model-permit.ts'
import { type Random, seededRandom } from './random.ts'
import type { MakeStore, SuiteCase } from './store-suite.ts'

const MAX_KEYS = 16
const KEYS = 64
const STEPS = 1_000

const hold = (by?: string) => concurrency({ limit: 3, hold: '4s', by })
const slowerHold = concurrency({ limit: 4, hold: '11s' })

const jointRules = [
  tokenBucket({ limit: 5, per: '3s', by: 'user', name: 'requests' }),
  fixedWindow({ limit: 9, per: '4s', by: 'org', align: 'clock', name: 'calls' }),
  hold('user'),
  concurrency({ limit: 5, hold: '3s', by: 'org', name: 'streams' }),
]

const name = (random: Random) => `key ${random.below(random.pick([4, KEYS]))}`

/**
 * jointEvictionCases rotate permits and keys with fields through a store that is too small for
 * them.
 */
export function jointEvictionCases(
  make: MakeStore,
  seed: number,
  fields: boolean | 'in turn',
): SuiteCase[] {
  const cases: SuiteCase[] = [
    {
      name: 'concurrency admits no key more than its rule while keys rotate',
      run: () => rotate(make, seed, [hold()], name),
    },
    {
      name: 'concurrency in tiers with other limits admits no more while keys rotate',
      run: () => rotateTiers(make, seed),
    },
  ]
  if (!fields) return cases
  return [
    ...cases,
    {
      name: 'rules of several fields admit no more while values of each rotate',
      run: () =>
        rotate(make, seed, jointRules, (random) => ({ user: name(random), org: name(random) })),
    },
    {
      name: 'a decision evicts no row that it uses itself',
      run: () => usesOwnRows(make),
    },
  ]
}

/**
 * Replays every permit and its end in the model, which must allow all that the store admitted. A
 * full store may refuse more, and frees nothing when a permit is released whose row it has evicted.
 */
async function rotate(
  make: MakeStore,
  seed: number,
  rules: readonly Rule[],
  keyFrom: (random: Random) => ModelKey,
): Promise<void> {
  const { store, clock } = await make({ maxKeys: MAX_KEYS })
  const random = seededRandom(seed)
  const limiter = limiterOn(rules, { store, name: 'rotation' })
  const model = createModel()
  const permits: { readonly theirs: Permit; readonly ours: ModelPermit }[] = []
  let admitted = 0
  for (let step = 0; step < STEPS; step += 1) {
    const key = keyFrom(random)
    const cost = random.pick([1, 1, 1, 2])
    clock.advance(random.pick([0, 0, 0.001, 1, 37, 150]))
    const nowUs = clock.nowUs()
    const permit = await limiter.tryAcquire(key as string, cost)
    if (permit.allowed) {
      const { decision, permit: ours } = model.acquire(key, rules, cost, nowUs)
      equal(decision.allowed, true, `step ${step}: ${JSON.stringify(key)} was admitted`)
      permits.push({ theirs: permit as Permit, ours: ours! })
      admitted += 1
    }
    if (permits.length > 0 && random.below(3) === 0) {
      const [{ theirs, ours }] = permits.splice(random.below(permits.length), 1)
      const isExtended = random.below(3) === 0 && (await theirs.extend())
      // An evicted row no longer knows the hold, which then ends at its original time.
      if (isExtended) equal(ours.extend(nowUs), true, `step ${step}: it was extended`)
      await theirs.release()
      ours.release(nowUs)
    }
  }
  const refused = STEPS - admitted
  equal(Math.min(admitted, refused) > STEPS / 20, true, `${admitted} admitted, ${refused} refused`)
  equal((await limiter.stats()).evictions > 0, true, 'keys were evicted')
}

/** The shortest hold of the tiers, in microseconds. It shortens holds that are carried over to it. */
const SHORTEST_US = 4_000_000

/**
 * Moves keys between tiers with different holds. Units taken less than the shortest hold ago must
 * still be held, also after evictions. Units that are carried back and forth must come back
 * eventually.
 */
async function rotateTiers(make: MakeStore, seed: number): Promise<void> {
  const { store, clock } = await make({ maxKeys: MAX_KEYS })
  const random = seededRandom(seed)
  const tiers = { quick: hold(), slow: slowerHold }
  const policy = createPolicy({ tiers, defaultTier: 'quick' })
  const limiter = limiterOn(policy, { store, name: 'rotation' })
  const taken: { readonly key: string; readonly cost: number; readonly untilUs: number }[] = []
  for (let step = 0; step < STEPS; step += 1) {
    clock.advance(random.pick([0, 0, 0.001, 1, 37, 150]))
    const nowUs = clock.nowUs()
    const key = name(random)
    const cost = random.pick([1, 1, 1, 2])
    const tier = random.pick(['quick', 'slow'] as const)
    if (!(await limiter.tryAcquire(key, cost, { tier })).allowed) continue
    taken.push({ key, cost, untilUs: nowUs + SHORTEST_US })
    const own = taken.filter((each) => each.key === key && each.untilUs > nowUs)
    const held = own.reduce((sum, each) => sum + each.cost, 0)
    equal(held <= tiers[tier].limit, true, `step ${step}: ${held} of ${key} in ${tier}`)
  }
  equal((await limiter.stats()).evictions > 0, true, 'keys were evicted')
  equal(taken.length > STEPS / 20 && taken.length < STEPS, true, `${taken.length} admitted`)
  for (let second = 0; second < 30; second += 1) {
    for (const tier of ['quick', 'slow']) await limiter.peek(`new ${second}`, 1, { tier })
    clock.advance(1_000)
  }
  equal((await limiter.peek('new', 1, { tier: 'quick' })).remaining, 3, 'all units came back')
}

/** Checks a decision with one row per field when each field has room for one row only. */
async function usesOwnRows(make: MakeStore): Promise<void> {
  const { store } = await make({ maxKeys: 1 })
  const limiter = limiterOn(jointRules, { store, name: 'own' })
  const left = async (user: string, org: string) =>
    (await limiter.peek({ user, org } as never)).rules.map((rule) => rule.remaining)
  const first = (await limiter.tryAcquire({ user: 'a', org: 'a' } as never)) as Permit
  await limiter.tryAcquire({ user: 'a', org: 'a' } as never)
  equal(await left('a', 'a'), [3, 7, 1, 3], 'both were counted twice')
  await first.release()
  equal(await left('a', 'a'), [3, 7, 2, 4], 'both rows know the hold')
  equal((await limiter.stats()).evictions, 0, 'evictions')
  await limiter.tryAcquire({ user: 'b', org: 'b' } as never)
  const [requests, calls, held, streams] = await left('a', 'a')
  equal([requests <= 3, calls <= 7, held <= 2, streams <= 4], Array(4).fill(true), 'when evicted')
}
