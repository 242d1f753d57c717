import type { Decision } from '../core/decision.ts'
import { CENTURY_MS, durationUs } from '../core/duration.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { checkFunction, checkOptions, checkWhole } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import { memoryStore } from '../stores/memory/memory.ts'
import type { RuleSet, Store } from '../stores/store.ts'
import type {
  AsyncLimiterOptions,
  CallOptions,
  LimiterOptions,
  LimitRequest,
  WaitOptions,
} from './verbs.ts'

/** knownWaitUs is the least until `cost` passes, or its slot comes, with `ahead` units before it. */
export function knownWaitUs(
  { allowed, retryAfterMs, delayMs, rules: each }: Decision,
  rules: readonly Rule[],
  ahead: number,
  cost: number,
): number {
  let known = Math.round((allowed ? delayMs : retryAfterMs) * 1_000)
  for (let i = 0; i < rules.length; i += 1) {
    const rule = rules[i]
    const waitUs = Math.round(each[i].retryAfterMs * 1_000)
    const resetUs = Math.round(each[i].resetAfterMs * 1_000)
    const { remaining } = each[i]
    const line = rule.algorithm.lineUs(rule, waitUs, resetUs, remaining, ahead, cost)
    if (line > known) known = line
  }
  return known
}

const WAIT_OPTIONS = ['signal', 'maxWaitMs', 'maxWaiting', 'tier']

/** checkWait makes the options of a `wait` complete, and throws when its signal has aborted. */
export function checkWait(options: WaitOptions) {
  checkOptions('wait', options, WAIT_OPTIONS)
  const { signal, maxWaitMs = 30_000, maxWaiting = 1_000, tier } = options
  const maxWaitUs = durationUs('wait: maxWaitMs', maxWaitMs, 0, CENTURY_MS)
  checkWhole('wait: maxWaiting', maxWaiting, 0, Number.MAX_SAFE_INTEGER)
  checkSignal(signal)
  signal?.throwIfAborted()
  return { signal, maxWaitUs, maxWaiting, call: tier === undefined ? undefined : { tier } }
}

/** tooLong is the answer to a `wait` that saw this, where the least known wait is too long. */
export function tooLong(seen: Decision, waitUs: number): Decision {
  return { ...seen, allowed: false, retryAfterMs: waitUs / 1_000, delayMs: 0 }
}

/** Throws unless `signal` is an AbortSignal or left out. */
function checkSignal(signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return
  throw new SluiceError(
    'SLUICE_OPTION',
    `wait: signal must be an AbortSignal, got ${shown(signal)}.`,
  )
}

/** checkedCapacity gives the rules back, unless one could never admit the cost. */
export function checkedCapacity(set: RuleSet, cost: number): RuleSet {
  if (cost <= set.capacity) return set
  throw exceeds(set, cost)
}

/** checkShape tells two slips that would otherwise be taken for a misspelt option. */
export function checkShape(options: unknown): void {
  if (shown(options) !== 'an object' || typeof options !== 'object' || options === null) return
  if ('algorithm' in options) {
    throw new SluiceError('SLUICE_OPTION', 'createLimiter: several rules go into one array.')
  }
  if ('open' in options) {
    throw new SluiceError('SLUICE_OPTION', 'createLimiter: pass the store as { store }.')
  }
}

/** FAILURE_OPTIONS are the options that only a store that answers later has a use for. */
export const FAILURE_OPTIONS = [
  'timeoutMs',
  'onStoreFailure',
  'fleetSize',
  'onDegraded',
  'onRecovered',
] as const

/** checkFailure checks what is to happen when a store fails. */
export function checkFailure(options: AsyncLimiterOptions): AsyncLimiterOptions {
  const {
    clock,
    timeoutMs = 50,
    onStoreFailure = 'local',
    fleetSize = 1,
  } = options as typeof options & { clock?: unknown }
  if (clock !== undefined) throw clockOfStore()
  checkWhole('createLimiter: timeoutMs', timeoutMs, 1, 60_000)
  checkWhole('createLimiter: fleetSize', fleetSize, 1, 10_000)
  checkFunction('createLimiter: onDegraded', options.onDegraded)
  checkFunction('createLimiter: onRecovered', options.onRecovered)
  if (!['local', 'open', 'closed'].includes(onStoreFailure)) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `createLimiter: onStoreFailure must be 'local', 'open' or 'closed', got ${shown(onStoreFailure)}.`,
    )
  }
  return options
}

/** checkNoFailure: a store that answers at once cannot fail to answer. */
export function checkNoFailure(options: LimiterOptions): void {
  for (const name of FAILURE_OPTIONS) {
    if ((options as Record<string, unknown>)[name] === undefined) continue
    throw new SluiceError(
      'SLUICE_OPTION',
      `createLimiter: ${name} is for a store that answers later, such as redisStore().`,
    )
  }
}

type Begin = (key: string, cost: number, options: CallOptions | undefined) => RuleSet
type CheckedRequest = { set: RuleSet; key: string; cost: number }

const REQUEST_OPTIONS = ['key', 'cost', 'tier']

/**
 * checkRequests checks all requests of a `checkMany` before anything is spent. Each is read once:
 * what was checked is what is spent, even from an object with getters.
 */
export function checkRequests(requests: readonly LimitRequest[], begin: Begin): CheckedRequest[] {
  if (!Array.isArray(requests)) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `checkMany takes an array of { key, cost }, got ${shown(requests)}.`,
    )
  }
  const checked: CheckedRequest[] = []
  for (let i = 0; i < requests.length; i += 1) {
    try {
      checked.push(checkRequest(requests[i], begin))
    } catch (error) {
      throw ofRequest(i, error)
    }
  }
  return checked
}

function checkRequest(request: LimitRequest, begin: Begin): CheckedRequest {
  checkOptions('a request', request, REQUEST_OPTIONS)
  const { key, cost = 1, tier } = request
  return { set: begin(key, cost, tier === undefined ? undefined : { tier }), key, cost }
}

/** An error about one of many requests, with its number. */
function ofRequest(index: number, error: unknown): unknown {
  if (!(error instanceof SluiceError)) return error
  return new SluiceError(error.code, `checkMany, request ${index}: ${error.message}`, {
    cause: error,
  })
}

/** storeOf is the store of a limiter: the one given, or a memory store of its own. */
export function storeOf({ store, clock }: LimiterOptions): Store {
  if (store === undefined) return memoryStore({ clock })
  if (clock !== undefined) throw clockOfStore()
  if (typeof store?.open === 'function') return store
  throw new SluiceError(
    'SLUICE_OPTION',
    `createLimiter: store must be a store such as memoryStore(), got ${shown(store)}.`,
  )
}

function clockOfStore(): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION',
    'createLimiter: a clock belongs to its store: memoryStore({ clock }).',
  )
}

function exceeds(set: RuleSet, cost: number): SluiceError {
  const rule = set.rules.find(({ capacity }) => capacity < cost)!
  return new SluiceError(
    'SLUICE_COST_EXCEEDS_CAPACITY',
    `a cost of ${cost} can never pass rule "${rule.name}", whose capacity is ${rule.capacity}. ` +
      'Split the work, or raise the limit, burst or queue.',
  )
}

/** delays: allow() where a leaky bucket may hand out a delay. */
export function delays(): SluiceError {
  return new SluiceError(
    'SLUICE_ALLOW_DELAYS',
    'allow() would hide the delay of a leaky bucket. Use check() and hold the request for ' +
      'delayMs, or wait().',
  )
}
