import { SluiceError } from '../core/errors.ts'
import type { Rule } from '../core/rule.ts'

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

/** unlisted: keys of a remote store that brings no `list` were to be listed or cleared. */
export function unlisted(): SluiceError {
  return new SluiceError(
    'SLUICE_NOT_LISTABLE',
    'this store cannot list its keys, so entries(), size() and clear() do not work. Give ' +
      'remoteStore() a `list`; peek() and reset() work without one.',
  )
}

/** mismatch: a limiter of the same name with other rules is already there. */
export function mismatch(name: string, theirs: string, ours: string): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_MISMATCH',
    `a limiter called "${name}" has used this store with the rules ${theirs}, not ${ours}. ` +
      'Give this limiter another `name`.',
  )
}

/** blocksFull: too many blocked keys in one bucket of shared memory. */
export function blocksFull(): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_FULL',
    'there is no room for another blocked key beside this one: blocks are never evicted, and ' +
      'shared memory has a fixed size. Use a larger maxKeys.',
  )
}

/** unfit: a rule for which the rows of a table that cannot change have no room. */
export function unfit(rule: Rule): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_MISMATCH',
    `rule "${rule.name}" (${rule.algorithm.name}): rows in shared memory are laid out once, and ` +
      'these have no room for it. Create the limiter, in every thread, with all the rules that ' +
      'keys may get later: as tiers or overrides of its policy.',
  )
}

/** unleasableFields: leases on a limiter whose keys have fields. */
export function unleasableFields(where: string): SluiceError {
  return new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    `${where}: units cannot be leased where rules count several fields of a key. Use a store without ` +
      '`lease`.',
  )
}

/** unjoined: a rule whose units cannot be given back, in a decision over rows that go one by one. */
export function unjoined(rule: Rule): SluiceError {
  return new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    `rule "${rule.name}": the slots of a ${rule.algorithm.name} cannot be given back, and this store ` +
      'spends from several keys one after the other. Use tokenBucket(), gcra() or memoryStore().',
  )
}

/** unleasable: a rule whose units cannot be taken ahead of time. */
export function unleasable(rule: Rule): SluiceError {
  return new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    `rule "${rule.name}": units of a ${rule.algorithm.name} cannot be leased. Use tokenBucket(), ` +
      'or a store without `lease`.',
  )
}
