import type { Cost } from '../core/cost.ts'
import { type Decision, noteFailure } from '../core/decision.ts'
import type { Held } from '../core/held.ts'
import type { FieldKey } from '../core/key.ts'
import type { Request, RequestRow, RuleSet, Verb } from '../stores/store.ts'
import type { Breaker, Pass } from './breaker.ts'
import { uncounted } from './local.ts'
import type { Timed, TimeLimit } from './time-limit.ts'

/** Wanted is an operation on one key that a limiter requests. */
export type Wanted = Pick<Request, 'verb' | 'set' | 'key' | 'cost'> &
  Partial<Pick<Request, 'fields' | 'generation' | 'held' | 'change' | 'isCounted'>>

/** Asked is the key, rules and cost of a limiter's call; KeyTexts is its key. */
export type Asked = Pick<Wanted, 'set' | 'key' | 'fields' | 'cost'>
export type KeyTexts = Pick<Wanted, 'key' | 'fields'>

/** PendingParts are the time limit of requests and the fallbacks if the store does not answer. */
export interface PendingParts {
  readonly limit: TimeLimit
  /** Answers after the store failed with `error`. Throws for calls that need the store. */
  instead(request: Wanted, error: unknown): Decision | undefined
  /** Called for a permit that arrives after its caller was answered. */
  cameLate?(request: Wanted, held: Held): void
}

/** Pending is a request in flight. It is a class because every decision allocates one. */
export class Pending implements Request, Timed {
  readonly parts: PendingParts
  readonly breaker: Breaker
  readonly pass: Pass | undefined
  readonly verb: Verb
  readonly set: RuleSet
  readonly key: string
  readonly fields: FieldKey | undefined
  readonly cost: Cost
  readonly generation: number
  readonly held: Held | undefined
  readonly change: Cost
  readonly isCounted: boolean
  readonly resolve: (decision: Decision | undefined) => void
  readonly reject: (error: unknown) => void
  readonly pending = undefined
  result: Held | undefined = undefined
  isSent = false
  isContended = false
  order = 0
  rows: readonly RequestRow[] | undefined = undefined
  next: Request | undefined = undefined
  lease = 0
  untilUs = 0
  dueMs = 0
  isRunning = false
  isPutOff = false
  wasLate = false
  older: Timed | undefined = undefined
  newer: Timed | undefined = undefined

  constructor(
    parts: PendingParts,
    breaker: Breaker,
    { verb, set, key, fields, cost, generation = 0, held, change = 0, isCounted = true }: Wanted,
    nowMs: number,
    resolve: (decision: Decision | undefined) => void,
    reject: (error: unknown) => void,
  ) {
    this.parts = parts
    this.breaker = breaker
    this.pass = breaker.enter()
    this.verb = verb
    this.set = set
    this.key = key
    this.fields = fields
    this.cost = cost
    this.generation = generation
    this.held = held
    this.change = change
    this.isCounted = isCounted
    this.resolve = resolve
    this.reject = reject
    if (this.pass) parts.limit.start(this, nowMs)
  }

  done(decision?: Decision): void {
    if (!this.parts.limit.stop(this)) {
      if (this.result && this.verb === 'check') this.parts.cameLate?.(this, this.result)
      return
    }
    this.breaker.succeeded(this.pass!)
    this.resolve(decision)
  }

  failed(error: unknown): void {
    if (!this.parts.limit.stop(this)) return
    // The store works, but other writers won every swap: refuse, and do not count it as a failure.
    if (this.isContended) this.breaker.succeeded(this.pass!)
    else this.breaker.failed(this.pass!, error)
    if (this.isContended && this.verb === 'check') {
      this.resolve(noteFailure(uncounted(this.set.rules, 'closed'), error))
    } else {
      this.answerInstead(error)
    }
  }

  putOff(): boolean {
    return this.parts.limit.putOff(this)
  }

  answerInstead(error = this.breaker.lastError()): void {
    try {
      this.resolve(this.parts.instead(this, error))
    } catch (error) {
      this.reject(error)
    }
  }
}
