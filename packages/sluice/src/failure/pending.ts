import type { Cost } from '../core/cost.ts'
import { type Decision, noteFailure } from '../core/decision.ts'
import type { Held } from '../core/held.ts'
import type { FieldKey } from '../core/key.ts'
import type { Request, RequestRow, RuleSet, Verb } from '../stores/store.ts'
import type { Breaker, Pass } from './breaker.ts'
import { uncounted } from './local.ts'
import type { Timed, TimeLimit } from './time-limit.ts'

/** What a limiter wants to be done about one key. */
export type Wanted = Pick<Request, 'verb' | 'set' | 'key' | 'cost'> &
  Partial<Pick<Request, 'fields' | 'generation' | 'held' | 'change' | 'isCounted'>>

/** Asked is what a limiter asks about one key, and KeyTexts that key. */
export type Asked = Pick<Wanted, 'set' | 'key' | 'fields' | 'cost'>
export type KeyTexts = Pick<Wanted, 'key' | 'fields'>

/** Who is told of a request, and what answers it when the store does not. */
export interface PendingParts {
  readonly limit: TimeLimit
  /** Answers without the store, which failed with that error; throws where only the store can. */
  instead(request: Wanted, error: unknown): Decision | undefined
  /** A permit that came when its caller had an answer already. */
  cameLate?(request: Wanted, held: Held): void
}

/** Pending is a request that the store has not answered yet. A class, since each decision has one. */
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
    // The store works, but other writers were faster every time: neither counted nor admitted.
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
