export { type ManualClock, manualClock } from './manual-clock.ts'
export { createModel, type Model } from './model.ts'
export { playTrace } from './play.ts'
export { type Random, seededRandom } from './random.ts'
export { type RedisData, type RedisStandIn, redisStandIn } from './redis-stand-in.ts'
export {
  type MadeStore,
  type MakeStore,
  type SuiteCase,
  type SuiteOptions,
  storeSuite,
} from './store-suite.ts'
export { type Exercised, playStream, randomSteps, ruleMakers, type Step } from './streams.ts'
export type { Trace, TraceLine } from './trace.ts'
export { traces } from './traces.ts'
