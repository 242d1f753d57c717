import type { FastifyInstance } from 'fastify'
import { type Decision, SluiceError } from 'sluice'
import { z } from 'zod'
import type { AnyLimiter } from '../limits.ts'
import { type Answer, answerOf, neverOf } from './answer.ts'
import type { AccessGuard, ApiOptions } from './api.ts'
import { decisionText } from './decision-text.ts'
import { askedFields, type Question, questionOf } from './question.ts'
import { readBody } from './read-body.ts'

const MOST_CHECKS = 1_000

const check = z.strictObject({ ...askedFields, cost: z.number().optional() })
const example = { key: 'alice', cost: 1 }
const manyExample = { checks: [{ key: 'alice' }, { key: 'bob', cost: 5 }] }
const batch = z.strictObject({ checks: z.array(check).max(MOST_CHECKS) })

/**
 * addCheck adds `POST /v1/check`: one decision, or up to 1,000 in order. JSON has no infinity, so
 * unlimited values are null.
 */
export function addCheck(app: FastifyInstance, guard: AccessGuard, options: ApiOptions): void {
  // Not async: with a synchronous store the response is sent synchronously.
  app.post('/v1/check', { onRequest: guard('check') }, (request, reply) => {
    const { body } = request
    if (typeof body === 'object' && body !== null && 'checks' in body) {
      const { checks } = readBody(batch, body, manyExample)
      const questions = checks.map((each, i) => questionOf(options.current(), each, `checks.${i}.`))
      return decideAll(questions, options).then((decisions) => ({ decisions }))
    }
    const question = questionOf(options.current(), readBody(check, body, example))
    const { limiter, key, cost, call } = question
    const startMs = performance.now()
    const answer = (decided: Answer) => {
      const seconds = (performance.now() - startMs) / 1_000
      const shown = report(question, decided, seconds, options)
      return reply.type('application/json').send(decisionText(shown))
    }
    const never = (error: unknown) => refusedForEver(question, error).then(answer)
    let decision: Decision | Promise<Decision>
    try {
      decision = limiter.check(key, cost, call)
    } catch (error) {
      return never(error)
    }
    return decision instanceof Promise ? decision.then(answer, never) : answer(decision)
  })
}

/** Decides all questions for one limiter in one call, which is one round trip on Redis. */
async function decideAll(questions: readonly Question[], options: ApiOptions): Promise<Answer[]> {
  const groups = new Map<AnyLimiter, number[]>()
  for (const [i, { limiter }] of questions.entries()) {
    const group = groups.get(limiter)
    if (group) group.push(i)
    else groups.set(limiter, [i])
  }
  const answers: Answer[] = []
  for (const [limiter, places] of groups) {
    const group = places.map((i) => questions[i])
    const decided = await askAll(limiter, group, options)
    for (const [j, i] of places.entries()) {
      answers[i] = report(questions[i], decided[j], undefined, options)
    }
  }
  return answers
}

/**
 * Asks one limiter. Costs above the capacity are answered apart, since they would fail the call.
 */
async function askAll(
  limiter: AnyLimiter,
  questions: readonly Question[],
  options: ApiOptions,
): Promise<Answer[]> {
  const ask = async (some: readonly Question[]): Promise<Answer[]> =>
    limiter.checkMany(some.map(({ key, cost, call }) => ({ key, cost, ...call })))
  try {
    return await ask(questions)
  } catch (error) {
    if (!exceeds(error)) throw error
    const isNever = questions.map((question) => question.cost > capacityOf(question, options))
    const others = await ask(questions.filter((_, i) => !isNever[i]))
    const decided = others.values()
    return Promise.all(
      questions.map((question, i) =>
        isNever[i] ? refusedForEver(question, error) : decided.next().value!,
      ),
    )
  }
}

/** The smallest capacity of the deciding rules. */
function capacityOf({ key, route, tier }: Question, { current }: ApiOptions): number {
  const { limits, settings } = current()
  const own = settings.routes.find(({ name }) => name === route)?.rules
  const rules = own ?? limits.policy.rulesFor(key, tier)
  return Math.min(...rules.map(({ capacity }) => capacity))
}

/** Answers if the limiter threw because the cost is above the capacity; rethrows other errors. */
async function refusedForEver(
  { limiter, key, cost, call }: Question,
  error: unknown,
): Promise<Answer> {
  if (!exceeds(error)) throw error
  return neverOf(await limiter.peek(key, 0, call), cost)
}

function exceeds(error: unknown): boolean {
  return error instanceof SluiceError && error.code === 'SLUICE_COST_EXCEEDS_CAPACITY'
}

/** Reports a decision to metrics and logs, and returns the answer of the caller. */
function report(
  { route, key, tier, cost, isShadow }: Question,
  decision: Answer,
  seconds: number | undefined,
  { onDecision, onUndecided }: ApiOptions,
): Answer {
  const answer = answerOf(decision, isShadow)
  const shadowed = answer.allowed && !decision.allowed
  if (!answer.never) onDecision({ route, key, tier, cost, decision, shadowed, seconds })
  else if (!shadowed) onUndecided({ route, reason: 'cost above capacity' })
  return answer
}
