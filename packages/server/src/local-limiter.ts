import { createLimiter, type Limiter, memoryStore, type Rule } from 'sluice'

/** localLimiter counts in this process only; each worker has its own, which is intended. */
export function localLimiter(rules: Rule | readonly Rule[]): Limiter {
  return createLimiter(rules, { store: memoryStore({ perProcess: true }) })
}
