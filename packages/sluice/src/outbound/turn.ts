import { SluiceError, shown } from '../core/errors.ts'
import { checkFunction } from '../core/options.ts'
import type { CostByRule } from '../limiter/key-types.ts'
import { rulesOf } from '../limiter/rules-of.ts'
import type { AsyncLimiter, Limiter, WaitOptions } from '../limiter/verbs.ts'

/** AnyLimiter is a limiter whose keys are texts. */
export type AnyLimiter = Limiter | AsyncLimiter

/** TurnOptions say how long calls wait for their turn; as those of `limiter.wait`. */
export type TurnOptions = Pick<WaitOptions, 'maxWaitMs' | 'maxWaiting'>

/** Throttled tells how long its lines are. */
export interface Throttled {
  /** How many calls wait for a key; without one, for that of the options. */
  waiting(key?: string): number
}

/**
 * takeTurn waits until a call may be made. It resolves to what ends the call's hold, or to undefined
 * where no rule holds anything.
 */
export async function takeTurn(
  limiter: AnyLimiter,
  key: string,
  cost: number | CostByRule,
  options: WaitOptions,
): Promise<(() => void) | undefined> {
  const rules = rulesOf(limiter)(key, undefined)
  // Of a limiter that is wrapped in another object, no rules are known.
  if (rules.length === 0 || rules.some(({ algorithm }) => algorithm.holds)) {
    const permit = await limiter.acquire(key, cost, options)
    return () => void permit.release()
  }
  await limiter.wait(key, cost, options)
  return undefined
}

/** checkTurns throws unless there is a limiter, and a key is a text or a function. */
export function checkTurns(where: string, limiter: AnyLimiter, key: unknown): void {
  if (typeof limiter?.wait !== 'function') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `${where}: limiter must come from createLimiter(), got ${shown(limiter)}.`,
    )
  }
  if (typeof key !== 'string') checkFunction(`${where}: key`, key)
}
