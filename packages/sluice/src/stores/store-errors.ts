import { SluiceError } from '../errors.ts'
import type { Rule } from '../rule.ts'

/** unsupported: a rule whose state is a list, in a store that holds numbers. */
export function unsupported(rule: Rule): SluiceError {
  return new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    `rule "${rule.name}": this store keeps a few numbers per key and cannot hold the list of a ` +
      `${rule.algorithm.name}. Use memoryStore(), or slidingWindowCounter().`,
  )
}

/** unlistable: keys were to be listed that are not kept. */
export function unlistable(): SluiceError {
  return new SluiceError(
    'SLUICE_NOT_LISTABLE',
    'this store keeps fingerprints, not keys, and cannot list them. Use memoryStore() to list ' +
      'keys; peek() and size() work here too.',
  )
}

/** mismatch: a limiter of the same name with other rules is already there. */
export function mismatch(name: string, theirs: string, ours: string): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_MISMATCH',
    `a limiter called "${name}" already uses this store with the rules ${theirs}, not ${ours}. ` +
      'Give this limiter another `name`.',
  )
}
