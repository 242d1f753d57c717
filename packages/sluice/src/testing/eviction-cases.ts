import { fixedWindow } from '../algorithms/fixed-window.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import type { Rule } from '../core/rule.ts'
import { createPolicy } from '../limiter/policy.ts'
import type { Limiter } from '../limiter/verbs.ts'
import { equal } from './equal.ts'
import { limiterOn } from './limiter-on.ts'
import { createModel } from './model.ts'
import { seededRandom } from './random.ts'
import { rotationRules, slowerRules } from './rotation-rules.ts'
import type { MakeStore, SuiteCase } from './store-suite.ts'

const MAX_KEYS = 16
const KEYS = 64
const STEPS = 3_000
/**
 * The approximate `per` of the rules. If `per` is a calendar period, time advances faster in
 * proportion.
 */
const USUAL_PER_US = 4_000_000

/**
 * evictionCases rotate more keys through a store than it holds: no key may get more than its rule.
 */
export function evictionCases(
  make: MakeStore,
  without: readonly string[],
  seed: number,
): SuiteCase[] {
  const isHeld = ({ algorithm }: Rule) => !without.includes(algorithm.name)
  const rules = rotationRules.filter(isHeld)
  const ofLikePer = rules.filter(({ algorithm }) => !algorithm.periods)
  return [
    ...rules.map((rule) => ({
      name: `${rule.algorithm.name} admits no key more than its rule while keys rotate`,
      run: () => rotate(make, seed, [rule], 1),
    })),
    {
      name: 'fixed-window never admits more than twice its limit across an edge while keys rotate',
      run: () => rotateWindow(make, seed),
    },
    {
      name: 'several rules in two tiers admit no more while keys rotate',
      run: () => rotate(make, seed, ofLikePer, 2),
    },
    ...rules.map((rule, i) => ({
      name: `${rule.algorithm.name} in tiers with other limits admits no more while keys rotate`,
      run: () => rotateTiers(make, seed, [[rule], [slowerRules.filter(isHeld)[i]]]),
    })),
    {
      name: 'a throttled key stays throttled, and a blocked one blocked, while other keys come and go',
      async run() {
        const { store, clock } = await make({ maxKeys: MAX_KEYS })
        const limiter = limiterOn(rules[0], { store, name: 'flood' })
        await limiter.charge('throttled', rules[0].capacity)
        await limiter.block('blocked', '1h')
        for (let i = 0; i < 2_000; i += 1) await limiter.check(`stranger ${i}`)
        clock.advance(1)
        equal((await limiter.peek('throttled')).allowed, false, 'throttled')
        equal((await limiter.peek('blocked')).source, 'blocked', 'blocked')
      },
    },
    ...(without.includes('token-bucket') ? [] : slowerTierCases(make)),
    {
      name: 'a key that is reset in a full store is fresh',
      async run() {
        const { store } = await make({ maxKeys: MAX_KEYS })
        const limiter = limiterOn(rules[0], { store, name: 'reset' })
        for (let i = 0; i < 200; i += 1) await limiter.charge(`stranger ${i}`, 1)
        await limiter.charge('a', 1)
        await limiter.reset('a')
        equal((await limiter.peek('a')).remaining, rules[0].capacity, 'remaining')
      },
    },
  ]
}

/** Cases of keys that are evicted in one tier and come back in another. */
function slowerTierCases(make: MakeStore): SuiteCase[] {
  return [
    {
      name: 'an evicted key that requests in a slower tier while blocked is forgiven nothing',
      run: () =>
        asksInSlowerTier(make, async (limiter) => {
          await limiter.block('a', '500ms')
          // Only synchronous limiters have allow.
          const ask = limiter.allow ?? limiter.check
          await ask('a', 1, { tier: 'slow' })
          await limiter.unblock('a')
        }),
    },
    {
      name: 'an evicted key that gets a refund in a slower tier is forgiven nothing more',
      run: () => asksInSlowerTier(make, (limiter) => limiter.refund('a', 1, { tier: 'slow' })),
    },
  ]
}

/** Checks that `ask` in the slower tier carries over the used units of a key that has no row. */
async function asksInSlowerTier(
  make: MakeStore,
  ask: (limiter: Limiter) => void | Promise<void>,
): Promise<void> {
  const { store, clock } = await make({ maxKeys: 1 })
  const tiers = {
    fast: tokenBucket({ limit: 5, per: '1s' }),
    slow: tokenBucket({ limit: 5, per: '1m' }),
  }
  const limiter = limiterOn(createPolicy({ tiers, defaultTier: 'fast' }), { store, name: 'tiers' })
  await limiter.charge('a', 5)
  await limiter.charge('b', 1)
  clock.advance(100)
  await ask(limiter)
  clock.advance(1_000)
  equal((await limiter.peek('a', 5, { tier: 'slow' })).allowed, false, 'the whole capacity')
}

/** A request, and whether it was admitted. */
interface Played {
  readonly step: number
  readonly key: string
  readonly tier: number
  readonly cost: number
  readonly nowUs: number
  readonly allowed: boolean
}

/**
 * Plays random requests of many keys. `judge` gets each of them and throws if a key got more than
 * its rule allows. A full store may refuse more than the rule would.
 */
async function play(
  make: MakeStore,
  seed: number,
  tiers: readonly (readonly Rule[])[],
  judge: (played: Played) => void,
): Promise<void> {
  const { store, clock } = await make({ maxKeys: MAX_KEYS })
  const random = seededRandom(seed)
  const policy = createPolicy({ tiers: Object.fromEntries(tiers.entries()), defaultTier: '0' })
  const limiter = limiterOn(policy, { store, name: 'rotation' })
  const shortestUs = Math.min(...tiers.flat().map(({ perUs }) => perUs))
  const times = Math.max(1, Math.floor(shortestUs / USUAL_PER_US))
  let admitted = 0
  let refused = 0
  for (let step = 0; step < STEPS; step += 1) {
    const key = `key ${random.below(random.pick([4, KEYS]))}`
    const tier = random.below(tiers.length)
    const cost = random.pick([1, 1, 1, 2])
    clock.advance(times * random.pick([0, 0, 0.001, 1, 37, 250]))
    const { allowed } = await limiter.check(key, cost, { tier: String(tier) })
    if (allowed) admitted += 1
    else refused += 1
    judge({ step, key, tier, cost, nowUs: clock.nowUs(), allowed })
  }
  const share = Math.min(admitted, refused) / STEPS
  equal(share > 0.05, true, `${admitted} admitted, ${refused} refused: too few of one`)
  equal(
    (await limiter.stats()).evictions > 0,
    true,
    `created with maxKeys ${MAX_KEYS}, it evicted none of ${KEYS} keys`,
  )
}

/** The same rules in every tier, but one fewer in each. */
function rotate(
  make: MakeStore,
  seed: number,
  rules: readonly Rule[],
  tierCount: number,
): Promise<void> {
  const tiers = Array.from({ length: tierCount }, (_, i) => rules.slice(i))
  return rotateTiers(make, seed, tiers)
}

/** Replays every request in the model, which must allow all that the store admitted. */
async function rotateTiers(
  make: MakeStore,
  seed: number,
  tiers: readonly (readonly Rule[])[],
): Promise<void> {
  const model = createModel()
  await play(make, seed, tiers, ({ step, key, tier, cost, nowUs, allowed }) => {
    if (!allowed) return model.carry(key, tiers[tier], nowUs)
    const wanted = model.decide(key, tiers[tier], cost, nowUs, true)
    equal(wanted.allowed, true, `step ${step}: ${key} in tier ${tier} was admitted`)
  })
}

/**
 * Checks that a key gets at most twice the limit in any interval of `per`. Windows that open at a
 * request cannot be compared with the model: after an eviction the next one opens at another
 * request.
 */
async function rotateWindow(make: MakeStore, seed: number): Promise<void> {
  const rule = fixedWindow({ limit: 5, per: '4s' })
  const admissions = new Map<string, { atUs: number; cost: number }[]>()
  await play(make, seed, [[rule]], ({ step, key, cost, nowUs: atUs, allowed }) => {
    if (!allowed) return
    const own = [...(admissions.get(key) ?? []), { atUs, cost }]
    const recent = own.filter((one) => one.atUs > atUs - rule.perUs)
    admissions.set(key, recent)
    const units = recent.reduce((sum, one) => sum + one.cost, 0)
    equal(
      units <= 2 * rule.limit,
      true,
      `step ${step}: ${key} got ${units} units in its last window`,
    )
  })
}
