import { fixedWindow } from '../algorithms/fixed-window.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { equal } from './equal.ts'
import { randomPenalty } from './joint-rules.ts'
import { limiterOn } from './limiter-on.ts'
import { createModel } from './model.ts'
import type { ModelKey } from './model-counters.ts'
import { type Random, seededRandom } from './random.ts'
import type { MadeStore } from './store-suite.ts'

/** Rules that refuse nearly always, for one client and for all clients together. */
const ofClient = tokenBucket({ limit: 2, per: '1h' })
const ofUser = tokenBucket({ limit: 2, per: '1h', by: 'user' })
const ofAll = fixedWindow({ limit: 1, per: '20ms', by: 'global' })

/** Draws the next instant. One in four is at a given instant, or a microsecond before or after it. */
function nextUs(random: Random, instantsUs: readonly number[], nowUs: number): number {
  const coming = instantsUs.filter((us) => us > nowUs + 1)
  if (random.below(4) > 0 || coming.length === 0) return nowUs + random.pick([0, 0, 0, 1, 997])
  return random.pick(coming) + random.pick([-1, 0, 1])
}

/**
 * playPenalties plays a stream of refusals, with a penalty drawn from the seed, on a store and on
 * the reference model. It throws at the first difference.
 */
export async function playPenalties(
  { store, clock }: MadeStore,
  seed: number,
  steps: number,
  hasFields: boolean,
): Promise<void> {
  const random = seededRandom(seed)
  const penalty = drawPenalty(random, hasFields)
  const rules = hasFields ? [ofUser, ofAll] : [ofClient]
  const limiter = limiterOn(rules, { store, name: `penalty ${seed}`, penalty })
  const model = createModel(penalty)
  const keys: ModelKey[] = hasFields ? [{ user: 'a' }, { user: 'b' }] : ['a', 'b']
  for (let step = 0; step < steps; step += 1) {
    const key = random.pick(keys)
    const seen = model.decide(key, rules, 1, clock.nowUs(), false)
    const endsUs = seen.rules.map(({ retryAfterMs }) => retryAfterMs).concat(seen.retryAfterMs)
    const instantsUs = endsUs.map((ms) => clock.nowUs() + Math.round(ms * 1_000))
    const atUs = nextUs(random, [...instantsUs, ...model.forgottenUs(key)], clock.nowUs())
    clock.advance((atUs - clock.nowUs()) / 1_000)
    const what = random.below(100)
    const label = `step ${step} of ${JSON.stringify(penalty)}: ${JSON.stringify(key)} at ${atUs} µs`
    if (what < 75) {
      const expected = model.decide(key, rules, 1, atUs, true)
      equal(await limiter.check(key as string), expected, `${label}: check`)
    } else if (what < 90) {
      const expected = model.decide(key, rules, 1, atUs, false)
      equal(await limiter.peek(key as string), expected, `${label}: peek`)
    } else if (what < 98) {
      model.unblock(key)
      await limiter.unblock(key as string)
    } else {
      model.reset(key)
      await limiter.reset(key as string)
    }
  }
}

function drawPenalty(random: Random, hasFields: boolean) {
  for (;;) {
    const penalty = randomPenalty(random, hasFields ? ['user'] : [])
    if (penalty) return penalty
  }
}
