import { SluiceError } from '../core/errors.ts'
import type { Rule } from '../core/rule.ts'

/** unsupported: the rule's state is a list, and the store holds only numbers. */
export function unsupported(rule: Rule): SluiceError {
  return new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    `rule "${rule.name}": this store keeps a few numbers per key and cannot hold the list of a ` +
      `${rule.algorithm.name}. Use memoryStore(), or slidingWindowCounter().`,
  )
}

/** unlistable: entries() was called on a store that does not keep keys. */
export function unlistable(): SluiceError {
  return new SluiceError(
    'SLUICE_NOT_LISTABLE',
    'this store keeps fingerprints, not keys, and cannot list them. Use memoryStore() to list ' +
      'keys; peek() and size() work here too.',
  )
}

/** unlisted: entries(), size() or clear() was called on a remote store without `list`. */
export function unlisted(): SluiceError {
  return new SluiceError(
    'SLUICE_NOT_LISTABLE',
    'this store cannot list its keys, so entries(), size() and clear() do not work. Give ' +
      'remoteStore() a `list`; peek() and reset() work without one.',
  )
}

/** mismatch: a limiter of this name already uses the store with other rules. */
export function mismatch(name: string, theirs: string, ours: string): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_MISMATCH',
    `a limiter called "${name}" has used this store with the rules ${theirs}, not ${ours}. ` +
      'Give this limiter another `name`.',
  )
}

/** blocksFull: the key's bucket in shared memory is full of blocked keys. */
export function blocksFull(): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_FULL',
    'cannot block this key: its part of shared memory is full of blocked keys. Blocks are never evicted, and ' +
      'shared memory has a fixed size. Use a larger maxKeys.',
  )
}

/** unfit: the fixed row layout of shared memory has no cells for this rule. */
export function unfit(rule: Rule): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_MISMATCH',
    `rule "${rule.name}" (${rule.algorithm.name}): the layout of rows in shared memory is fixed, and ` +
      'has no room for this rule. Create the limiter, in every thread, with all rules that ' +
      'keys may get later: as tiers or overrides of its policy.',
  )
}

/** unleasableFields: the store has `lease`, and the limiter's keys have several fields. */
export function unleasableFields(where: string): SluiceError {
  return new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    `${where}: units cannot be leased if rules count several fields of a key. Use a store without ` +
      '`lease`.',
  )
}

/** unjoined: the store spends row by row, and a refusal could not give back this rule's units. */
export function unjoined(rule: Rule): SluiceError {
  return new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    `rule "${rule.name}": the slots of a ${rule.algorithm.name} cannot be given back, and this store ` +
      'spends from several keys one after the other. Use tokenBucket(), gcra() or memoryStore().',
  )
}

/** unleasable: units of this rule cannot be leased. */
export function unleasable(rule: Rule): SluiceError {
  return new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    `rule "${rule.name}": units of a ${rule.algorithm.name} cannot be leased. Use tokenBucket(), ` +
      'or a store without `lease`.',
  )
}
