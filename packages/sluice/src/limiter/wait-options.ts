import type { Decision } from '../core/decision.ts'
import { CENTURY_MS, durationUs } from '../core/duration.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { checkOptions, checkWhole } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import type { WaitOptions } from './verbs.ts'

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
