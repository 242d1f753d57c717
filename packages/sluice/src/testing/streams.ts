import { calendarWindow } from '../algorithms/calendar-window.ts'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { gcra } from '../algorithms/gcra.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../algorithms/sliding-window-log.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { MOST_UNITS } from '../core/cost.ts'
import type { Decision } from '../core/decision.ts'
import { CENTURY_US } from '../core/duration.ts'
import type { Rule } from '../core/rule.ts'
import type { PenaltyOptions } from '../limiter/penalty.ts'
import { createPolicy } from '../limiter/policy.ts'
import type { Limiter } from '../limiter/verbs.ts'
import { equal } from './equal.ts'
import { limiterOn } from './limiter-on.ts'
import type { ManualClock } from './manual-clock.ts'
import { createModel } from './model.ts'
import type { Random } from './random.ts'
import type { MadeStore } from './store-suite.ts'

const verbs = ['check', 'peek', 'charge', 'refund', 'block', 'unblock', 'reset'] as const

/**
 * Step is one step of a random stream. It holds choices rather than values, since interesting
 * values (a cost of one more than remains, a microsecond before the retry time) depend on the state
 * when the step is played. All are whole numbers from 0 to 999.
 */
export interface Step {
  /** Picks the verb. */
  readonly verb: number
  /** Picks the key. */
  readonly key: number
  /** Picks the cost. */
  readonly cost: number
  /** Picks how far the clock advances before. */
  readonly time: number
  /** How far, and on which side of a boundary. */
  readonly offset: number
  /** Picks the tier. */
  readonly tier: number
}

/** Exercised counts what a stream exercised. */
export interface Exercised {
  /** How many steps were played. */
  steps: number
  /** How many decisions admitted. */
  admitted: number
  /** How many decisions refused. */
  refused: number
  /** Steps within a microsecond of an instant that a decision had announced. */
  boundary: number
}

const keys = ['alice', 'bob', '__proto__']

/** randomSteps draws a stream of `count` steps. */
export function randomSteps(random: Random, count: number): Step[] {
  const choice = () => random.below(1_000)
  return Array.from({ length: count }, () => ({
    verb: choice(),
    key: choice(),
    cost: choice(),
    time: choice(),
    offset: choice(),
    tier: choice(),
  }))
}

const DAY_MS = 86_400_000
const pers = [1, 7, 10, 333, 1_000, 1_001, 60_000, 3_600_000, DAY_MS - 1, DAY_MS, 400 * DAY_MS]
const small = [1, 2, 3, 5, 7, 10, 60, 100, 997, 10_000, 1_000_000, 9_999_991, 10_000_000]
/** Limits whose products exceed 2^53. Primes hardly ever share a factor with other numbers. */
const large = [50_000_000, 999_999_937, 125_000_000_000, 999_999_999_989, 1_000_000_000_000]
const limits = [...small, ...large]
const largeBursts = [undefined, 999_999_999_961]

/** ruleMakers draw a random rule of each algorithm, over the whole range of its parameters. */
export const ruleMakers: Readonly<Record<string, (random: Random, name?: string) => Rule>> = {
  'fixed-window': (random, name) =>
    fixedWindow({ ...figures(random, limits, name), align: random.pick(['request', 'clock']) }),
  'sliding-window-log': (random, name) =>
    slidingWindowLog(figures(random, [1, 2, 3, 5, 7, 10, 60], name)),
  'sliding-window-counter': (random, name) => slidingWindowCounter(figures(random, limits, name)),
  'token-bucket': (random, name) =>
    inRange(() => tokenBucket({ ...figures(random, limits, name), burst: burst(random) })),
  gcra: (random, name) =>
    inRange(() => gcra({ ...figures(random, limits, name), burst: burst(random) })),
  'leaky-bucket': (random, name) =>
    inRange(() =>
      leakyBucket({
        ...figures(random, limits, name),
        queue: random.pick([0, 1, 2, 5, 100, 999_999_999_999]),
      }),
    ),
  'calendar-window': (random, name) => {
    const per = random.pick(['hour', 'day', 'week', 'month', 'year'] as const)
    const limit = random.pick(limits)
    return calendarWindow({
      limit,
      per,
      zone: random.pick(zones),
      startsOn: start(random, per),
      name,
    })
  },
}

/**
 * Zones whose clocks change by half an hour, by two hours or at midnight, or whose offset has 45
 * minutes.
 */
const zones = [
  ...[undefined, 'UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe'],
  ...['Antarctica/Troll', 'America/Havana', 'Atlantic/Azores', 'Pacific/Chatham', 'Asia/Kathmandu'],
  ...['Africa/Cairo', 'America/Santiago', 'Pacific/Kiritimati', 'etc/gmt+12'],
]

function start(random: Random, per: string): number | string | undefined {
  if (per === 'week') return random.pick([undefined, 1, 4, 7])
  if (per === 'month') return random.pick([undefined, 1, 15, 28, 29, 30, 31])
  if (per === 'year') return random.pick([undefined, '01-01', '04-06', '02-29', '12-31'])
  return undefined
}

/** largeRuleMakers draw rules with large limits, of algorithms that multiply by a limit. */
export const largeRuleMakers: typeof ruleMakers = {
  'sliding-window-counter': (random, name) => slidingWindowCounter(figures(random, large, name)),
  'token-bucket': (random, name) =>
    inRange(() =>
      tokenBucket({ ...figures(random, large, name), burst: random.pick(largeBursts) }),
    ),
  'leaky-bucket': (random, name) => inRange(() => leakyBucket(figures(random, large, name))),
}

function figures(random: Random, from: readonly number[], name: string | undefined) {
  return { limit: random.pick(from), per: random.pick(pers), name }
}

function burst(random: Random): number | undefined {
  return random.pick([undefined, 1, 2, 5, 20, 1_000, 10_000_000, 999_999_999_961])
}

/** Draws again if a rule would take more than a hundred years to become fresh. */
function inRange(make: () => Rule): Rule {
  for (;;) {
    try {
      return make()
    } catch {}
  }
}

/**
 * playStream plays a stream on a store and on the reference model, and throws at the first
 * difference of a unit or a microsecond. `tiers` are lists of rules between which keys switch;
 * `penalty` blocks keys that are refused too often.
 */
export async function playStream(
  { store, clock }: MadeStore,
  tiers: readonly (readonly Rule[])[],
  steps: readonly Step[],
  penalty?: PenaltyOptions,
): Promise<Exercised> {
  const policy = createPolicy({
    tiers: Object.fromEntries(tiers.entries()),
    defaultTier: '0',
  })
  const limiter = limiterOn(policy, { store, name: 'stream', penalty })
  const model = createModel(penalty)
  const tally: Exercised = { steps: 0, admitted: 0, refused: 0, boundary: 0 }
  for (const step of steps) {
    const key = keys[step.key % keys.length]
    // Mostly the first tier, so that states build up between switches.
    const tier = step.tier < 900 ? 0 : step.tier % tiers.length
    const rules = tiers[tier]
    const call = { tier: String(tier) }
    // A peek must change nothing, not even carry used units over to the tier.
    const look = async (cost: number) => {
      const seen = model.decide(key, rules, cost, clock.nowUs(), false)
      equal(await limiter.peek(key, cost, call), seen, `before step ${tally.steps}: peek ${key}`)
      return seen
    }
    const cost = costOf(step, await look(1))
    const forgottenMs = model.forgottenUs(key).map((us) => (us - clock.nowUs()) / 1_000)
    const instants = [...instantsOf(await look(cost)), ...forgottenMs]
    if (moveTime(clock, step, instants)) tally.boundary += 1
    const nowUs = clock.nowUs()
    const verb = verbOf(step)
    const label = `step ${tally.steps}: ${verb} ${key} cost ${cost} tier ${tier} at ${nowUs} µs`
    if (verb === 'check' || verb === 'peek') {
      const expected = model.decide(key, rules, cost, nowUs, verb === 'check')
      // The fast path, if the limiter has one, must decide alike.
      if (verb === 'check' && step.offset % 2 === 0 && hasAllow(limiter, rules)) {
        equal(limiter.allow(key, cost, call), expected.allowed, `${label}, by allow()`)
      } else {
        equal(await limiter[verb](key, cost, call), expected, label)
      }
      if (verb === 'check' && expected.allowed) tally.admitted += 1
      if (verb === 'check' && !expected.allowed) tally.refused += 1
    } else if (verb === 'charge' || verb === 'refund') {
      model[verb](key, rules, cost, nowUs)
      await limiter[verb](key, cost, call)
    } else if (verb === 'block') {
      const us = 1 + step.offset * 997
      model.block(key, nowUs + us)
      await limiter.block(key, us / 1_000)
    } else {
      model[verb](key)
      await limiter[verb](key)
    }
    tally.steps += 1
  }
  return tally
}

/** hasAllow tells whether `allow` works: on synchronous limiters, with rules that never delay. */
export function hasAllow(limiter: Limiter, rules: readonly Rule[]): boolean {
  return typeof limiter.allow === 'function' && !rules.some((rule) => rule.algorithm.delays)
}

function verbOf({ verb }: Step): (typeof verbs)[number] {
  if (verb < 780) return 'check'
  if (verb < 880) return 'peek'
  if (verb < 915) return 'charge'
  if (verb < 975) return 'refund'
  if (verb < 980) return 'block'
  return verb < 992 ? 'unblock' : 'reset'
}

/** Draws a cost near the remaining units or the capacity. */
function costOf({ cost }: Step, { remaining, capacity }: Decision): number {
  const part = Math.floor((capacity * cost) / 1_000)
  const more = remaining + 1
  const choices = [1, 1, 0, 2, remaining, more, more, more, capacity, capacity, cost, part]
  return Math.min(choices[cost % choices.length], capacity, MOST_UNITS)
}

/** instantsOf returns the time until the instants that a decision names, in milliseconds. */
export function instantsOf(seen: Decision): number[] {
  const ofRules = seen.rules.flatMap((rule) => [rule.resetAfterMs, rule.nextAfterMs])
  return [seen.retryAfterMs, seen.resetAfterMs, ...ofRules]
}

/**
 * moveTime advances the clock. Returns true if it is then within a microsecond of one of the
 * instants.
 */
export function moveTime(
  clock: ManualClock,
  { time, offset }: Step,
  afterMs: readonly number[],
): boolean {
  const instants = afterMs.filter((ms) => ms > 0 && ms * 1_000 < CENTURY_US / 50)
  if (time < 300 && instants.length > 0) {
    const us = Math.round(instants[time % instants.length] * 1_000) + (offset % 3) - 1
    clock.advance(us / 1_000)
    return true
  }
  if (time < 850) return false
  // Sometimes into another window, perhaps the one after the next.
  if (time >= 980 && instants.length > 0) {
    clock.advance(Math.round(instants[time % instants.length] * offset * 4) / 1_000)
    return false
  }
  // Otherwise from a microsecond to about a minute, uniform by order of magnitude.
  clock.advance(Math.round(10 ** (time % 8) * (1 + offset / 100)) / 1_000)
  return false
}
