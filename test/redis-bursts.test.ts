import { setTimeout as sleep } from 'node:timers/promises'
import {
  concurrency,
  createLimiter,
  createPolicy,
  type Decision,
  fixedWindow,
  type KeyFields,
  memoryStore,
  type Rule,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
  unlimited,
} from 'sluice'
import { type Random, seededRandom } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { useRedis } from './redis/fixture.ts'
import { timedStore, type Wire } from './redis/timed.ts'

const redis = useRedis()

const tierOf = { u1: 'free', u2: 'pro', u3: 'internal' } as const
const everyone = tokenBucket({ limit: 97, per: '7s', by: 'global', name: 'everyone' })
const logged = slidingWindowLog({ limit: 30, per: '3s', by: 'org', name: 'logged' })
const window = fixedWindow({ limit: 40, per: '3s', by: 'org', name: 'window' })
const streams = concurrency({ limit: 6, hold: '4s', by: 'org', name: 'streams' })
const tiers = {
  free: [
    tokenBucket({ limit: 7, per: '10s', burst: 5, by: 'user', name: 'requests' }),
    slidingWindowCounter({ limit: 9, per: '1s', by: 'user', name: 'tokens' }),
  ],
  pro: [
    tokenBucket({ limit: 20, per: '10s', by: 'user', name: 'requests' }),
    fixedWindow({ limit: 15, per: '2s', by: 'user', name: 'tokens' }),
  ],
  internal: [unlimited({ by: 'user' })],
}
const penalty = { by: 'user', after: 4, within: '1s', block: [50, '1s'] } as const

/** Kind is what a limiter has beside its tiers. The script takes checks without permits in short form. */
interface Kind {
  readonly rules: readonly Rule[]
  readonly penalty?: typeof penalty
  readonly verbs: readonly Call['verb'][]
}

const checks: Kind = {
  rules: [everyone, window],
  verbs: ['check', 'check', 'check', 'check', 'peek', 'charge', 'refund', 'block'],
}
const permits: Kind = {
  rules: [everyone, logged, streams],
  penalty,
  verbs: ['tryAcquire', 'tryAcquire', 'tryAcquire', 'peek', 'charge', 'refund'],
}

/** Creates the same limiter on a store: one trip has rows of all tiers. */
const limiterOf = ({ rules, penalty }: Kind, store: object): never => {
  const policy = createPolicy({ tierBy: 'user', tiers, defaultTier: 'free', rules } as never)
  for (const [user, tier] of Object.entries(tierOf)) policy.setTier(user, tier as never)
  return createLimiter(policy as never, { store, penalty, timeoutMs: 60_000 } as never) as never
}

interface Call {
  readonly verb: 'check' | 'tryAcquire' | 'peek' | 'charge' | 'refund' | 'block'
  readonly key: KeyFields
  readonly cost: number | Record<string, number>
}

/** Draws a call: with or without an organization, at one cost or one for each rule. A block lasts 5 ms. */
function drawCall(random: Random, { rules, verbs }: Kind): Call {
  const user = random.pick(Object.keys(tierOf) as (keyof typeof tierOf)[])
  const key: KeyFields = { user, org: random.pick(['o1', 'o2', null]) }
  const own: Rule[] = [...tiers[tierOf[user]], ...rules]
  const counted = own.filter(({ by }) => by === 'global' || key[by!] !== null)
  const units = () => random.pick([0, 1, 1, 2, 3])
  const cost = random.below(2)
    ? units()
    : Object.fromEntries(counted.map(({ name }) => [name, units()]))
  const verb = random.pick(verbs)
  return verb === 'block' ? { verb, key: { org: 'o1' }, cost: 5 } : { verb, key, cost }
}

type Verbs = Record<Call['verb'], (key: KeyFields, cost: Call['cost']) => unknown>

async function decisionOf(answer: unknown): Promise<Decision | undefined> {
  const given = (await answer) as Decision | { readonly decision: Decision } | undefined
  return given && 'decision' in given ? given.decision : given
}

/** Plays bursts that go to Redis in a few trips, and returns how many trips, decisions and refusals. */
async function playBursts(kind: Kind, seed: number, change = (text: string) => text) {
  const random = seededRandom(seed)
  const counts = { trips: 0, decisions: 0, refused: 0 }
  let held: Promise<void> | undefined
  const wire: Wire = async (send, command, args) => {
    if (command === 'EVALSHA') throw new Error('NOSCRIPT')
    counts.trips += 1
    await held
    return send(command, [change(args[0]), ...args.slice(1)])
  }
  const { store, clock } = timedStore(redis.client, wire)
  const ours: Verbs = limiterOf(kind, memoryStore({ clock }))
  const theirs: Verbs = limiterOf(kind, store)
  await theirs.peek({ user: 'u1', org: null }, 1)
  for (let burst = 0; burst < 20; burst += 1) {
    let release = () => {}
    held = new Promise((resolve) => {
      release = resolve
    })
    const answers = [
      [theirs.peek({ user: 'u1', org: null }, 0), ours.peek({ user: 'u1', org: null }, 0)],
    ]
    await sleep(1)
    for (let left = random.pick([20, 20, 200]); left > 0; left -= 1) {
      const { verb, key, cost } = drawCall(random, kind)
      answers.push([theirs[verb](key, cost), ours[verb](key, cost)])
    }
    release()
    held = undefined
    for (const [answer, expected] of answers) {
      const decision = await decisionOf(expected)
      expect(await decisionOf(answer)).toEqual(decision)
      if (!decision) continue
      counts.decisions += 1
      if (!decision.allowed) counts.refused += 1
    }
    clock.advance(random.pick([0, 0.001, 1, 20, 333, 1_000, 4_001]))
  }
  return counts
}

describe('bursts of calls about several fields, gathered into trips to Redis', () => {
  describe.each([
    { what: 'checks', kind: checks },
    { what: 'permits, with a penalty', kind: permits },
  ])('$what', ({ kind }) => {
    it.each([1, 2, 3, 4, 5])('are decided as in memory (seed %i)', async (seed) => {
      const { trips, decisions, refused } = await playBursts(kind, seed)
      expect(decisions).toBeGreaterThan(2 * trips)
      expect(Math.min(refused, decisions - refused)).toBeGreaterThan(decisions / 20)
    })
  })

  it.each([
    ['blocks are not looked at', 'if row.block > now then return end', ''],
    [
      'a refusal of one row spends on the others',
      'if not admits(rules[j], s[j], plan[k]) then return end',
      '',
    ],
    ['all rules spend the units of the first', 'if own then k = k + 1 end', ''],
    ['rows of other tiers are read by the first', 'sets[plan[k]]', 'sets[1]'],
  ])('notice when %s', async (_bug, good, bad) => {
    let patched = 0
    const change = (text: string) => {
      if (text.includes(good)) patched += 1
      return text.replaceAll(good, bad)
    }
    await expect(playBursts(checks, 1, change)).rejects.toThrow('to deeply equal')
    expect(patched).toBeGreaterThan(0)
  })
})
