export { type CalendarOptions, calendarWindow } from './algorithms/calendar-window.ts'
export { type ConcurrencyOptions, concurrency } from './algorithms/concurrency.ts'
export { fixedWindow, type WindowOptions } from './algorithms/fixed-window.ts'
export { gcra } from './algorithms/gcra.ts'
export { leakyBucket, type QueueOptions } from './algorithms/leaky-bucket.ts'
export { parseRule } from './algorithms/parse-rule.ts'
export { slidingWindowCounter } from './algorithms/sliding-window-counter.ts'
export { slidingWindowLog } from './algorithms/sliding-window-log.ts'
export { type BurstOptions, tokenBucket } from './algorithms/token-bucket.ts'
export { unlimited } from './algorithms/unlimited.ts'
export type { Algorithm, Windows } from './core/algorithm.ts'
export { type Clock, systemClock } from './core/clock.ts'
export type { Decision, RuleDecision, Source } from './core/decision.ts'
export { defineAlgorithm } from './core/define-algorithm.ts'
export type { Duration } from './core/duration.ts'
export { type ErrorCode, errorCodes, SluiceError } from './core/errors.ts'
export { compositeKey } from './core/key.ts'
export { choiceParam, type Param, type Params, wholeParam } from './core/params.ts'
export {
  defineRule,
  type Rule,
  type RuleFactory,
  type RuleOptions,
  ruleFactory,
} from './core/rule.ts'
export { addressKey, apiKey, type Claims, jwtSubject, type KeyOf } from './http/identity.ts'
export { createAsyncLimiter } from './limiter/async-limiter.ts'
export type {
  CostByRule,
  KeyFields,
  LimiterCost,
  LimiterKey,
  LimiterTier,
} from './limiter/key-types.ts'
export { createLimiter } from './limiter/limiter.ts'
export type { PenaltyOptions } from './limiter/penalty.ts'
export type { AsyncPermit, NoPermit, Permit } from './limiter/permit.ts'
export { createPolicy, type Policy, type PolicyOptions } from './limiter/policy.ts'
export type {
  AnyLimiter,
  AnyLimiterOptions,
  AsyncLimiter,
  AsyncLimiterOptions,
  AsyncLimiterStats,
  CallOptions,
  Entry,
  FailureOptions,
  Limiter,
  LimiterOptions,
  LimiterStats,
  LimitRequest,
  PartOf,
  RunOptions,
  WaitOptions,
} from './limiter/verbs.ts'
export { type ThrottleOptions, throttle } from './outbound/throttle.ts'
export { type ThrottledFetch, type ThrottledOptions, throttled } from './outbound/throttled.ts'
export type { Throttled } from './outbound/turn.ts'
export { createReplay, type Replay, type ReplayAnswer, replay } from './replay/replay.ts'
export { type CompactStoreOptions, compactStore } from './stores/compact/compact.ts'
export { type MemoryStoreOptions, memoryStore } from './stores/memory/memory.ts'
export type {
  AsyncStats,
  AsyncStore,
  AsyncTable,
  Request,
  RuleSet,
  Store,
  Table,
  TableStats,
  Verb,
} from './stores/store.ts'
