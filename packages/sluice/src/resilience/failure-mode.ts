import type { Clock } from '../clock.ts'
import { type Decision, decisionOf, type Source } from '../decision.ts'
import { SluiceError } from '../errors.ts'
import type { Rule } from '../rule.ts'
import { memoryStore } from '../stores/memory.ts'
import type { AsyncTable, RuleSet, Table, TableRequest } from '../stores/store.ts'
import { createTimeLimit, type Timed, type TimeLimit } from '../time-limit.ts'
import type { FailureOptions } from '../verbs.ts'
import { type Breaker, createBreakers, type Pass } from './breaker.ts'
import { shareOf } from './share.ts'

/** How many keys are looked at together, to be shown. */
const LOOKED_AT = 128

/** How long a caller is told to wait when nobody knows. */
const UNKNOWN_WAIT_MS = 1_000

/** Question is a decision that somebody wants. */
export type Question = Pick<TableRequest, 'set' | 'key' | 'cost' | 'spend'>

/**
 * FailureMode is an async table that always decides, in time, whatever becomes of its store. What
 * changes the store on purpose rejects instead: nobody is to believe that it was done.
 */
export interface FailureMode {
  decide(set: RuleSet, key: string, cost: number, spend: boolean): Promise<Decision>
  decideAll(questions: readonly Question[]): Promise<Decision[]>
  /** What the store itself says, to be shown; rejects when it says nothing. */
  look(questions: readonly Question[]): Promise<Decision[]>
  charge(set: RuleSet, key: string, cost: number): Promise<void>
  refund(set: RuleSet, key: string, cost: number): Promise<void>
  block(key: string, us: number): Promise<void>
  unblock(key: string): Promise<void>
  reset(key: string): Promise<void>
  clear(): Promise<void>
  keys(): AsyncIterable<readonly string[]>
  close(): Promise<void>
}

export function createFailureMode(
  table: AsyncTable,
  clock: Clock,
  options: FailureOptions,
): FailureMode {
  const { timeoutMs = 50, onStoreFailure = 'local', fleetSize = 1 } = options
  const limit = createTimeLimit(timeoutMs)
  const { limited } = limit
  const breakerOf = createBreakers({
    open: (error) => tell(() => options.onDegraded?.(unavailable(error))),
    closed: () => tell(() => options.onRecovered?.()),
  })
  const breakerFor = (key: string) => breakerOf(table.partOf?.(key) ?? 0)
  const local = createLocal(clock, fleetSize)

  function instead(question: Question): Decision {
    if (onStoreFailure === 'local') return local.decide(question)
    return unknown(question.set.rules, onStoreFailure)
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

interface AskedParts {
  readonly limit: TimeLimit
  instead(question: Question): Decision
}

/** Asked is a question that was put to the store. A class, since there is one for every decision. */
class Asked implements TableRequest, Timed {
  readonly parts: AskedParts
  readonly breaker: Breaker
  readonly pass: Pass | undefined
  readonly set: RuleSet
  readonly key: string
  readonly cost: number
  readonly spend: boolean
  readonly resolve: (decision: Decision) => void
  readonly reject: (error: unknown) => void
  dueMs = 0
  isRunning = false
  older: Timed | undefined = undefined
  newer: Timed | undefined = undefined

  constructor(
    parts: AskedParts,
    breaker: Breaker,
    { set, key, cost, spend }: Question,
    resolve: (decision: Decision) => void,
    reject: (error: unknown) => void,
  ) {
    this.parts = parts
    this.breaker = breaker
    this.pass = breaker.enter()
    this.set = set
    this.key = key
    this.cost = cost
    this.spend = spend
    this.resolve = resolve
    this.reject = reject
    if (this.pass) parts.limit.start(this)
  }

  decided(decision: Decision): void {
    if (!this.parts.limit.stop(this)) return
    this.breaker.succeeded(this.pass!)
    this.resolve(decision)
  }

  failed(error: unknown): void {
    if (!this.parts.limit.stop(this)) return
    this.breaker.failed(this.pass!, error)
    this.answerInstead()
  }

  answerInstead(): void {
    try {
      this.resolve(this.parts.instead(this))
    } catch (error) {
      this.reject(error)
    }
  }
}

/** Local keeps the shares of a fleet's rules in memory while the store is away. */
function createLocal(clock: Clock, fleetSize: number) {
  let table: Table | undefined
  const sets = new WeakMap<RuleSet, RuleSet>()
  const opened = () => {
    table ??= memoryStore({ clock }).open('local', [], true)
    return table
  }

  function setOf(set: RuleSet): RuleSet {
    let own = sets.get(set)
    if (!own) {
      own = opened().use(set.rules.map((rule) => shareOf(rule, fleetSize)))
      own.figures.source = 'local'
      sets.set(set, own)
    }
    return own
  }

  return {
    decide({ set, key, cost, spend }: Question): Decision {
      const own = setOf(set)
      if (cost > own.capacity) return unknown(own.rules, 'local')
      opened().decide(own, key, cost, opened().nowUs(), spend)
      return decisionOf(own.rules, own.figures)
    },
    charge: (set: RuleSet, key: string, cost: number) =>
      opened().charge(setOf(set), key, cost, opened().nowUs()),
    refund: (set: RuleSet, key: string, cost: number) =>
      opened().refund(setOf(set), key, cost, opened().nowUs()),
    block(key: string, us: number) {
      const nowUs = opened().nowUs()
      opened().block(key, nowUs + us, nowUs)
    },
    unblock: (key: string) => table?.unblock(key),
    reset: (key: string) => table?.reset(key, table.nowUs()),
    clear: () => table?.clear(),
  }
}

/** A decision that nobody counted: everything passes, or nothing does, and nothing is known. */
function unknown(rules: readonly Rule[], source: Source): Decision {
  const allowed = source === 'open'
  const retryAfterMs = allowed ? 0 : UNKNOWN_WAIT_MS
  const each = rules.map(({ name, capacity }) => ({
    rule: name,
    capacity,
    remaining: 0,
    retryAfterMs,
    resetAfterMs: retryAfterMs,
    delayMs: 0,
  }))
  const capacity = Math.min(...rules.map((rule) => rule.capacity))
  return { ...each[0], capacity, allowed, rules: each, source }
}

function unavailable(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  const why = error instanceof Error ? error.message : String(error)
  return new SluiceError('SLUICE_STORE_UNAVAILABLE', `the store failed: ${why}`, { cause: error })
}

/** What a callback throws is nobody's decision: it goes where uncaught errors go. */
function tell(callback: () => void): void {
  queueMicrotask(callback)
}
