import type { Decision } from '../core/decision.ts'
import { CENTURY_MS, durationUs } from '../core/duration.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { checkOptions, checkWhole } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import type { WaitOptions } from './verbs.ts'

/** Outlook is the least wait that is known, and the answer to a call for which that is too long. */
export interface Outlook {
  readonly waitUs: number
  readonly refusal: Decision
}

/** outlookOf is what a decision tells about `cost` with `ahead` units in line before it. */
export function outlookOf(
  seen: Decision,
  rules: readonly Rule[],
  ahead: number,
  cost: number,
): Outlook {
  let waitUs = Math.round((seen.allowed ? seen.delayMs : seen.retryAfterMs) * 1_000)
  rules.forEach((rule, i) => {
    const { retryAfterMs, resetAfterMs, remaining } = seen.rules[i]
    const [retryUs, resetUs] = [Math.round(retryAfterMs * 1_000), Math.round(resetAfterMs * 1_000)]
    const lineUs = rule.algorithm.lineUs(rule, retryUs, resetUs, remaining, ahead, cost)
    if (lineUs > waitUs) waitUs = lineUs
  })
  const refusal = { ...seen, allowed: false, retryAfterMs: waitUs / 1_000, delayMs: 0 }
  return { waitUs, refusal }
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

/** Throws unless `signal` is an AbortSignal or left out. */
function checkSignal(signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return
  throw new SluiceError(
    'SLUICE_OPTION',
    `wait: signal must be an AbortSignal, got ${shown(signal)}.`,
  )
}
