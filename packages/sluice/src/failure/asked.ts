import type { Decision } from '../core/decision.ts'
import type { RuleSet, TableRequest } from '../stores/store.ts'
import type { Breaker, Pass } from './breaker.ts'
import type { Timed, TimeLimit } from './time-limit.ts'

/** Question is a decision that somebody wants. */
export type Question = Pick<TableRequest, 'set' | 'key' | 'cost' | 'spend'>

interface AskedParts {
  readonly limit: TimeLimit
  /** Decides without the store, which failed with that error. */
  instead(question: Question, error: unknown): Decision
}

/** Asked is a question that was put to the store. A class, since there is one for every decision. */
export class Asked implements TableRequest, Timed {
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
  isPutOff = false
  wasLate = false
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
    this.answerInstead(error)
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
