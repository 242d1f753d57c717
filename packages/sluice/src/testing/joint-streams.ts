import type { Decision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import { createPolicy, type Policy } from '../limiter/policy.ts'
import type { Limiter } from '../limiter/verbs.ts'
import { equal } from './equal.ts'
import type { JointRules } from './joint-rules.ts'
import { limiterOn } from './limiter-on.ts'
import { createModel, type Model } from './model.ts'
import type { ModelCost, ModelKey } from './model-counters.ts'
import type { ModelPermit } from './model-permit.ts'
import type { Random } from './random.ts'
import type { MadeStore } from './store-suite.ts'
import {
  type Exercised,
  hasAllow,
  instantsOf,
  moveTime,
  randomSteps,
  type Step,
} from './streams.ts'

/** JointStep is a step of a stream with permits and keys with fields. */
export interface JointStep extends Step {
  /** Picks one of the latest permits, and how to end it. */
  readonly permit: number
  readonly end: number
  /** Picks fields of the key that are null, or left out of a part. */
  readonly off: number
}

/** randomJointSteps makes a stream of `count` steps. */
export function randomJointSteps(random: Random, count: number): JointStep[] {
  const choice = () => random.below(1_000)
  return randomSteps(random, count).map((step) => ({
    ...step,
    permit: choice(),
    end: choice(),
    off: choice(),
  }))
}

/** A permit of the store and its counterpart in the model, with the rules that admitted them. */
interface Twins {
  readonly theirs: Extract<ReturnType<Limiter['tryAcquire']>, { readonly allowed: true }>
  readonly ours: ModelPermit
  readonly rules: readonly Rule[]
}

/** The state of a stream: the limiter, the model, and the calls that both have had. */
interface Played {
  readonly limiter: Limiter
  readonly policy: Policy
  readonly model: Model
  readonly clock: MadeStore['clock']
  readonly rules: JointRules
  /** The tiers that override a key's own. */
  readonly overrides: Map<string, number>
  permits: Twins[]
  readonly tally: Exercised
}

/** A call that the limiter and the model get alike. */
interface Call {
  readonly key: ModelKey
  readonly rules: readonly Rule[]
  readonly cost: ModelCost
  readonly options: { readonly tier: string }
  readonly nowUs: number
  readonly label: string
}

const values = ['alice', 'bob', '__proto__']

/** How many permits are kept at a time, to be ended in any order. */
const KEPT = 6

/**
 * playJointStream plays a stream of permits on a store and on the reference model, with fields if
 * the rules have some. It throws at the first difference of a unit or a microsecond.
 */
export async function playJointStream(
  { store, clock }: MadeStore,
  rules: JointRules,
  steps: readonly JointStep[],
): Promise<Exercised> {
  const policy = policyOf(rules)
  const tally: Exercised = { steps: 0, admitted: 0, refused: 0, boundary: 0 }
  const limiter = limiterOn(policy, { store, name: 'joint', penalty: rules.penalty })
  const model = createModel(rules.penalty)
  const overrides = new Map<string, number>()
  const played: Played = { limiter, policy, model, clock, rules, overrides, permits: [], tally }
  for (const step of steps) {
    await playStep(played, step)
    tally.steps += 1
  }
  const nowUs = clock.nowUs()
  if (store.kind === 'sync') equal(limiter.size(), model.size(nowUs), `size after ${steps.length}`)
  return tally
}

function policyOf({ fields, tiers, others }: JointRules): Policy {
  const named = { tiers: Object.fromEntries(tiers.entries()), defaultTier: '0' }
  if (fields.length === 0) return createPolicy(named)
  return createPolicy({ ...named, tierBy: fields[0], rules: others }) as Policy
}

async function playStep(played: Played, step: JointStep): Promise<void> {
  const { clock, model, tally, permits } = played
  const key = keyOf(played.rules.fields, step)
  const tier = step.tier < 850 ? 0 : step.tier % played.rules.tiers.length
  const rules = rulesOf(played, key, tier)
  const asked = (cost: ModelCost, what: string): Call => ({
    ...{ key, rules, cost, options: { tier: String(tier) }, nowUs: clock.nowUs() },
    label: `step ${tally.steps}: ${what} ${shownCall(key, cost)} tier ${tier} at ${clock.nowUs()} µs`,
  })
  const cost = costOf(step, await peek(played, asked(1, 'peek before')), rules)
  const seen = await peek(played, asked(cost, 'peek'))
  const ends = permits.flatMap(({ ours }) => ours.endsUs().map((us) => us - clock.nowUs()))
  const forgotten = model.forgottenUs(key).map((us) => us - clock.nowUs())
  const instants = [...instantsOf(seen), ...[...ends, ...forgotten].map((us) => us / 1_000)]
  if (moveTime(clock, step, instants)) tally.boundary += 1
  const { verb } = step
  if (verb < 40) await retry(played, asked(cost, 'retry in line'), step)
  else if (verb < 470) await acquire(played, asked(cost, 'acquire'))
  else if (verb < 550) await check(played, asked(cost, 'check'), step)
  else if (verb < 790) await endPermit(played, step, asked(cost, 'permit'))
  else if (verb < 850)
    await change(played, asked(cost, verb < 820 ? 'charge' : 'refund'), verb < 820)
  else await govern(played, step, asked(cost, 'govern'))
}

/** Compares a peek with the model. It must change nothing, or later steps would differ. */
async function peek({ limiter, model }: Played, call: Call): Promise<Decision> {
  const { key, rules, cost, options, nowUs, label } = call
  const expected = model.decide(key, rules, cost, nowUs, false)
  equal(await limiter.peek(key as string, cost, options), expected, label)
  return expected
}

async function acquire(played: Played, call: Call): Promise<void> {
  const { limiter, model, tally } = played
  const { key, rules, cost, options, nowUs, label } = call
  const { decision, permit: ours } = model.acquire(key, rules, cost, nowUs)
  const theirs = await limiter.tryAcquire(key as string, cost, options)
  equal(theirs.decision, decision, label)
  tally[decision.allowed ? 'admitted' : 'refused'] += 1
  if (theirs.allowed && ours) keep(played, { theirs, ours, rules })
}

/**
 * Plays a queued call that need not wait: it decides like any other, but counts towards no penalty.
 */
async function retry(played: Played, call: Call, { offset }: Step): Promise<void> {
  const { limiter, model, tally } = played
  const { key, rules, cost, options, nowUs, label } = call
  // A leaky bucket would make the call wait for its slot.
  if (rules.some(({ algorithm }) => algorithm.delays)) return acquire(played, call)
  const { decision, permit: ours } = model.acquire(key, rules, cost, nowUs, false)
  tally[decision.allowed ? 'admitted' : 'refused'] += 1
  const isHeld = offset % 2 === 0 || rules.some(({ algorithm }) => algorithm.holds)
  const inLine = limiter[isHeld ? 'acquire' : 'wait'](key as string, cost, {
    ...options,
    maxWaitMs: 0,
  })
  const theirs = await inLine.catch(({ code }: { code?: string }) => ({ decision: code }))
  const expected = decision.allowed ? decision : 'SLUICE_WAIT_TOO_LONG'
  equal('decision' in theirs ? theirs.decision : theirs, expected, label)
  if (ours && 'release' in theirs) keep(played, { theirs, ours, rules })
}

function keep(played: Played, twins: Twins): void {
  played.permits = [twins, ...played.permits].slice(0, KEPT)
}

/** Plays a check. Rules that hold have no `check`, and rules that delay no `allow`. */
async function check(played: Played, call: Call, { offset }: Step): Promise<void> {
  const { limiter, model, tally } = played
  const { key, rules, cost, options, nowUs, label } = call
  if (rules.some(({ algorithm }) => algorithm.holds)) return acquire(played, call)
  const expected = model.decide(key, rules, cost, nowUs, true)
  tally[expected.allowed ? 'admitted' : 'refused'] += 1
  if (offset % 2 === 0 && hasAllow(limiter, rules)) {
    equal(limiter.allow(key as string, cost, options), expected.allowed, `${label}, by allow()`)
  } else {
    equal(await limiter.check(key as string, cost, options), expected, label)
  }
}

/** Ends or extends one of the latest permits, which may have ended before. */
async function endPermit({ permits }: Played, step: JointStep, call: Call): Promise<void> {
  if (permits.length === 0) return
  const { nowUs, label } = call
  const { theirs, ours, rules } = permits[step.permit % permits.length]
  if (step.end < 350) {
    ours.release(nowUs)
    await theirs.release()
  } else if (step.end < 500) {
    ours.cancel(nowUs)
    await theirs.cancel()
  } else if (step.end < 750) {
    const units = (i: number) => (step.cost + i * step.offset) % 12
    const actual =
      step.end % 2 === 0
        ? units(0)
        : Object.fromEntries(rules.map(({ name }, i) => [name, units(i)]))
    ours.settle(actual, nowUs)
    await theirs.settle(actual)
  } else {
    const at = step.permit % permits.length
    equal(await theirs.extend(), ours.extend(nowUs), `${label}: extend the permit ${at} before`)
  }
}

async function change({ limiter, model }: Played, call: Call, isCharge: boolean): Promise<void> {
  const { key, rules, cost, options, nowUs } = call
  const verb = isCharge ? 'charge' : 'refund'
  model[verb](key, rules, cost, nowUs)
  await limiter[verb](key as string, cost, options)
}

/** Plays a block, unblock or reset, for some fields if the key has fields. */
async function govern(played: Played, step: JointStep, { key, nowUs }: Call): Promise<void> {
  const { limiter, model, policy, overrides, rules } = played
  const part = partOf(key, step) as string
  const { end, offset } = step
  if (end < 150) {
    const us = 1 + offset * 997
    model.block(part, nowUs + us)
    await limiter.block(part, us / 1_000)
  } else if (end < 400) {
    model.unblock(part)
    await limiter.unblock(part)
  } else if (end < 600) {
    model.reset(part)
    await limiter.reset(part)
  } else if (end < 950) {
    const own = tieredBy(rules, key)
    if (own === null) return
    const tier = offset % (rules.tiers.length + 1)
    policy.setOverride(own, rules.tiers[tier])
    if (tier < rules.tiers.length) overrides.set(own, tier)
    else overrides.delete(own)
  }
}

function keyOf(fields: readonly string[], { key, off }: JointStep): ModelKey {
  if (fields.length === 0) return values[key % values.length]
  const kept = off % fields.length
  const isOff = (i: number) => i !== kept && (off >> (i + 2)) % 4 === 0
  return Object.fromEntries(
    fields.map((field, i) => [field, isOff(i) ? null : values[(key >> (2 * i)) % values.length]]),
  )
}

/** Returns a part of the key: one or more fields, at least one of which is not null. */
function partOf(key: ModelKey, { off }: JointStep): ModelKey {
  if (typeof key === 'string') return key
  const own = Object.entries(key).filter(([, value]) => value !== null)
  const kept = off % own.length
  return Object.fromEntries(own.filter((_, i) => i === kept || (off >> (i + 3)) % 3 === 0))
}

/** Returns the part of a key that selects the tier; null if that field is null. */
function tieredBy({ fields }: JointRules, key: ModelKey): string | null {
  return typeof key === 'string' ? key : key[fields[0]]
}

/** Returns the rules in force. Rules of a null field, and its tier, are off. */
function rulesOf({ rules, overrides }: Played, key: ModelKey, tier: number): readonly Rule[] {
  const own = tieredBy(rules, key)
  const inForce = own === null ? 0 : (overrides.get(own) ?? tier)
  const all = [...rules.tiers[inForce], ...rules.others]
  return all.filter(({ by }) => typeof key === 'string' || by === 'global' || key[by!] !== null)
}

/** Draws a cost near the remaining units or the capacity: one for all rules, or one per rule. */
function costOf(
  { cost, off, offset }: JointStep,
  seen: Decision,
  rules: readonly Rule[],
): ModelCost {
  const around = (i: number, remaining: number, capacity: number) => {
    const choices = [1, 1, 0, 2, 1, remaining, remaining, remaining + 1, capacity, cost]
    return Math.min(choices[(cost + i * offset) % choices.length], capacity)
  }
  if (off % 2 === 0) {
    const remaining = Math.min(...seen.rules.map((rule) => rule.remaining))
    return around(0, remaining, Math.min(...rules.map(({ capacity }) => capacity)))
  }
  return Object.fromEntries(
    rules.map(({ name, capacity }, i) => [name, around(i, seen.rules[i].remaining, capacity)]),
  )
}

function shownCall(key: ModelKey, cost: ModelCost): string {
  return `${JSON.stringify(key)} cost ${JSON.stringify(cost)}`
}
