export { type Algorithm, defineAlgorithm } from './algorithms/algorithm.ts'
export { fixedWindow, type WindowOptions } from './algorithms/fixed-window.ts'
export { gcra } from './algorithms/gcra.ts'
export { leakyBucket, type QueueOptions } from './algorithms/leaky-bucket.ts'
export { slidingWindowCounter } from './algorithms/sliding-window-counter.ts'
export { slidingWindowLog } from './algorithms/sliding-window-log.ts'
export { type BurstOptions, tokenBucket } from './algorithms/token-bucket.ts'
export { unlimited } from './algorithms/unlimited.ts'
export { type Clock, systemClock } from './clock.ts'
export {
  type Decision,
  decisionOf,
  type Figures,
  type RuleDecision,
  type Source,
} from './decision.ts'
export type { Duration } from './duration.ts'
export { type ErrorCode, errorCodes, SluiceError } from './errors.ts'
export { addressKey, apiKey, type Claims, jwtSubject, type KeyOf } from './http/identity.ts'
export { compositeKey } from './key.ts'
export { createLimiter } from './limiter.ts'
export { type ThrottleOptions, throttled } from './outbound.ts'
export { parseRule } from './parse-rule.ts'
export { createPolicy, type Policy, type PolicyOptions } from './policy.ts'
export { createReplay, type Replay, type ReplayAnswer, replay } from './replay.ts'
export { defineRule, type Rule, type RuleOptions } from './rule.ts'
export { type CompactStoreOptions, compactStore } from './stores/compact.ts'
export { type MemoryStoreOptions, memoryStore } from './stores/memory.ts'
export type {
  AsyncStore,
  AsyncTable,
  RuleSet,
  Store,
  Table,
  TableRequest,
  TableStats,
} from './stores/store.ts'
export type {
  AsyncLimiter,
  AsyncLimiterOptions,
  CallOptions,
  Entry,
  FailureOptions,
  Limiter,
  LimiterOptions,
  LimitRequest,
  WaitOptions,
} from './verbs.ts'
