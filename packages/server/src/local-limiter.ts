import { createLimiter, type Limiter, memoryStore, type Rule } from 'sluice'

/** localLimiter counts in this process alone, and on purpose: other workers have their own. */
export function localLimiter(rules: Rule | readonly Rule[]): Limiter {
  return createLimiter(rules, { store: memoryStore({ perProcess: true }) })
}
