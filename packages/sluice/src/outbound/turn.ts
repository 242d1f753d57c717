import { SluiceError, shown } from '../core/errors.ts'
import { checkFunction } from '../core/options.ts'
import type { CostByRule } from '../limiter/key-types.ts'
import { rulesOf } from '../limiter/rules-of.ts'
import type { AsyncLimiter, Limiter, WaitOptions } from '../limiter/verbs.ts'

/** AnyLimiter is a limiter with string keys. */
export type AnyLimiter = Limiter | AsyncLimiter

/** TurnOptions bound how long calls wait, as in `limiter.wait`. */
export type TurnOptions = Pick<WaitOptions, 'maxWaitMs' | 'maxWaiting'>

/** Throttled reports the length of its queues. */
export interface Throttled {
  /** Returns how many calls wait for a key. Default: the key of the options. */
  waiting(key?: string): number
}

/**
 * takeTurn waits until a call may be made. Resolves to a function that ends the call's hold, or
 * undefined if no rule holds units.
 */
export async function takeTurn(
  limiter: AnyLimiter,
  key: string,
  cost: number | CostByRule,
  options: WaitOptions,
): Promise<(() => void) | undefined> {
  const rules = rulesOf(limiter)(key, undefined)
  // The rules of a wrapped limiter are unknown.
  if (rules.length === 0 || rules.some(({ algorithm }) => algorithm.holds)) {
    const permit = await limiter.acquire(key, cost, options)
    return () => void permit.release()
  }
  await limiter.wait(key, cost, options)
  return undefined
}

/** checkTurns throws unless there is a limiter, and the key is a string or a function. */
export function checkTurns(where: string, limiter: AnyLimiter, key: unknown): void {
  if (typeof limiter?.wait !== 'function') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `${where}: limiter must come from createLimiter(), got ${shown(limiter)}.`,
    )
  }
  if (typeof key !== 'string') checkFunction(`${where}: key`, key)
}
