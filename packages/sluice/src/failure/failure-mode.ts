import type { Clock } from '../core/clock.ts'
import { type Decision, noteFailure } from '../core/decision.ts'
import { reasonOf, SluiceError } from '../core/errors.ts'
import type { AsyncTable, RuleSet, TableRequest } from '../stores/store.ts'
import { Asked, type Question } from './asked.ts'
import { createBreakers } from './breaker.ts'
import type { CompleteFailure } from './failure-options.ts'
import { createLocal, uncounted } from './local.ts'
import { createTimeLimit } from './time-limit.ts'

/** How many keys are looked at together, to be shown. */
const LOOKED_AT = 128

/**
 * FailureMode is an async table that always decides, in time, whatever becomes of its store. What
 * changes the store on purpose rejects instead: nobody is to believe that it was done.
 */
export interface FailureMode
  extends Pick<AsyncTable, 'charge' | 'refund' | 'block' | 'unblock' | 'reset' | 'clear' | 'keys'> {
  decide(set: RuleSet, key: string, cost: number, spend: boolean): Promise<Decision>
  decideAll(questions: readonly Question[]): Promise<Decision[]>
  /** What the store itself says, to be shown; rejects when it says nothing. */
  look(questions: readonly Question[]): Promise<Decision[]>
  close(): Promise<void>
}

export function createFailureMode(
  table: AsyncTable,
  clock: Clock,
  options: CompleteFailure,
): FailureMode {
  const { timeoutMs, onStoreFailure, fleetSize } = options
  const limit = createTimeLimit(timeoutMs)
  const { limited } = limit
  const breakerOf = createBreakers({
    open: (error) => tell(() => options.onDegraded?.(unavailable(error))),
    closed: () => tell(() => options.onRecovered?.()),
  })
  const breakerFor = (key: string) => breakerOf(table.partOf?.(key) ?? 0)
  const local = createLocal(clock, fleetSize)

  function instead(question: Question, error: unknown): Decision {
    if (onStoreFailure === 'local') return local.decide(question)
    const decision = uncounted(question.set.rules, onStoreFailure)
    return onStoreFailure === 'closed' ? noteFailure(decision, error) : decision
  }

  const parts = { limit, instead }

  function decide(set: RuleSet, key: string, cost: number, spend: boolean): Promise<Decision> {
    const known = table.decideAtOnce?.(set, key, cost, spend)
    if (known) return Promise.resolve(known)
    return new Promise((resolve, reject) => {
      const asked = new Asked(parts, breakerFor(key), { set, key, cost, spend }, resolve, reject)
      if (asked.pass) table.decide([asked])
      else asked.answerInstead()
    })
  }

  function decideAll(questions: readonly Question[]): Promise<Decision[]> {
    const all: Asked[] = []
    const decisions = questions.map((question) => {
      const { set, key, cost, spend } = question
      const known = table.decideAtOnce?.(set, key, cost, spend)
      if (known) return known
      return new Promise<Decision>((resolve, reject) => {
        const asked = new Asked(parts, breakerFor(key), question, resolve, reject)
        if (asked.pass) all.push(asked)
        else asked.answerInstead()
      })
    })
    table.decide(all)
    return Promise.all(decisions)
  }

  async function settle(
    key: string,
    call: () => Promise<void>,
    otherwise: () => void,
  ): Promise<void> {
    const breaker = breakerFor(key)
    const pass = breaker.enter()
    if (pass) {
      try {
        await limited(call())
        breaker.succeeded(pass)
        return
      } catch (error) {
        breaker.failed(pass, error)
      }
    }
    if (onStoreFailure === 'local') otherwise()
  }

  async function look(questions: readonly Question[]): Promise<Decision[]> {
    const decisions: Decision[] = []
    for (let i = 0; i < questions.length; i += LOOKED_AT) {
      const requests: TableRequest[] = []
      const asked = questions.slice(i, i + LOOKED_AT).map(
        (question) =>
          new Promise<Decision>((decided, failed) => {
            requests.push({ ...question, dueMs: performance.now() + timeoutMs, decided, failed })
          }),
      )
      const all = limited(Promise.all(asked))
      table.decide(requests)
      decisions.push(...(await insist(all)))
    }
    return decisions
  }

  async function insist<T>(call: Promise<T>): Promise<T> {
    try {
      return await call
    } catch (error) {
      throw unavailable(error)
    }
  }

  return {
    decide,
    decideAll,
    look,
    async charge(set, key, cost) {
      if (cost === 0) return
      await settle(
        key,
        () => table.charge(set, key, cost),
        () => local.charge(set, key, cost),
      )
    },
    refund: (set, key, cost) =>
      settle(
        key,
        () => table.refund(set, key, cost),
        () => local.refund(set, key, cost),
      ),
    async block(key, us) {
      await insist(limited(table.block(key, us)))
      local.block(key, us)
    },
    async unblock(key) {
      await insist(limited(table.unblock(key)))
      local.unblock(key)
    },
    async reset(key) {
      await insist(limited(table.reset(key)))
      local.reset(key)
    },
    async clear() {
      await insist(table.clear())
      local.clear()
    },
    async *keys() {
      const pages = table.keys()[Symbol.asyncIterator]()
      for (;;) {
        const page = await insist(pages.next())
        if (page.done) return
        yield page.value
      }
    },
    async close() {
      await limited(Promise.resolve(table.close?.())).catch(() => {})
    },
  }
}

function unavailable(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  return new SluiceError('SLUICE_STORE_UNAVAILABLE', `the store failed: ${reasonOf(error)}`, {
    cause: error,
  })
}

/** What a callback throws is nobody's decision: it goes where uncaught errors go. */
function tell(callback: () => void): void {
  queueMicrotask(callback)
}
