import { SluiceError, shown } from '../core/errors.ts'
import { checkFlag, checkFunction, checkOptions } from '../core/options.ts'
import { checkName } from '../core/rule.ts'
import { memoryStore } from '../stores/memory/memory.ts'
import type { Store } from '../stores/store.ts'
import type { AnyLimiterOptions, LimiterOptions } from './verbs.ts'

/** The options that only a limiter on an asynchronous store has. */
const ASYNC_OPTIONS = ['timeoutMs', 'onStoreFailure', 'fleetSize', 'onDegraded', 'onRecovered']

/** checkLimiterOptions checks the options of all limiters, and detects two common mistakes. */
export function checkLimiterOptions(options: LimiterOptions | AnyLimiterOptions): void {
  checkShape(options)
  checkOptions('createLimiter', options, [
    'store',
    'name',
    'share',
    'clock',
    'onDecision',
    'penalty',
    ...ASYNC_OPTIONS,
  ])
  const { name = 'default', share, onDecision } = options
  checkName('createLimiter: name', name)
  checkFlag('createLimiter: share', share)
  checkFunction('createLimiter: onDecision', onDecision)
}

/** checkNotAsync throws if an option for asynchronous stores is given without a store. */
export function checkNotAsync(options: object): void {
  for (const name of ASYNC_OPTIONS) {
    if ((options as Record<string, unknown>)[name] === undefined) continue
    throw new SluiceError(
      'SLUICE_OPTION',
      `createLimiter: ${name} is for a store that answers later. Give one: { store: redisStore(client) }.`,
    )
  }
}

/** Detects two mistakes that would otherwise be reported as a misspelt option. */
function checkShape(options: unknown): void {
  if (shown(options) !== 'an object' || typeof options !== 'object' || options === null) return
  if ('algorithm' in options) {
    throw new SluiceError('SLUICE_OPTION', 'createLimiter: several rules go into one array.')
  }
  if ('open' in options && 'kind' in options) {
    throw new SluiceError('SLUICE_OPTION', 'createLimiter: pass the store as { store }.')
  }
}

/** storeOf returns the given store of a limiter, or a new memory store. */
export function storeOf({ store, clock }: LimiterOptions): Store {
  if (store === undefined) return memoryStore({ clock })
  if (clock !== undefined) throw clockOfStore()
  if (store?.kind === 'sync') return store
  throw new SluiceError(
    'SLUICE_OPTION',
    `createLimiter: store must be a store such as memoryStore(), got ${shown(store)}.`,
  )
}

/** clockOfStore: a clock was passed along with a store. */
export function clockOfStore(): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION',
    'createLimiter: a clock belongs to its store: memoryStore({ clock }).',
  )
}
