import { type Decision, decisionOf, type Source } from '../../core/decision.ts'
import type { TableRequest } from '../store.ts'
import type { Call, Trip } from './batch.ts'
import type { DenyCache } from './deny-cache.ts'
import type { Leases } from './leases.ts'
import type { RedisRules } from './rule-set.ts'
import type { View } from './view.ts'

/** DecideCall is the call of a decision. A class, since there is one for every decision. */
export class DecideCall implements Call {
  readonly verb: 'check' | 'peek' | 'lease'
  readonly set: RedisRules
  readonly key: string
  readonly cost: number
  readonly more: number
  readonly request: TableRequest
  readonly leases: Leases | undefined
  readonly denied: DenyCache | undefined
  next: Call | undefined = undefined

  constructor(request: TableRequest, leases: Leases | undefined, denied: DenyCache | undefined) {
    this.request = request
    this.set = request.set as RedisRules
    this.key = request.key
    this.cost = request.cost
    this.more = request.spend && leases ? leases.wish(this.set, this.key, this.cost) : 0
    this.verb = this.more > 0 ? 'lease' : request.spend ? 'check' : 'peek'
    this.leases = leases
    this.denied = denied
  }

  get dueMs(): number {
    return this.request.dueMs
  }

  putOff(): boolean {
    return this.request.putOff?.() ?? false
  }

  settle(view: View, leased: number, trip: Trip): void {
    const { set, key, cost, leases, denied, request } = this
    const decision = decisionOf(set.rules, set.readings)
    if (this.more > 0) leases?.note(set, key, leased, view, trip)
    if (denied && request.spend && !decision.allowed) {
      denied.note(set, key, cost, view, trip, decision.retryAfterMs)
    }
    request.decided(decision)
  }

  reject(error: unknown): void {
    if (this.more > 0) this.leases?.failed(this.key)
    this.request.failed(error)
  }
}

/** decisionFrom is a decision by the set's readings that was made without a trip. */
export function decisionFrom({ rules, readings }: RedisRules, source: Source): Decision {
  readings.source = source
  const decision = decisionOf(rules, readings)
  readings.source = 'store'
  return decision
}
