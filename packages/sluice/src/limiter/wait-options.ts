import type { Decision } from '../core/decision.ts'
import { CENTURY_MS, durationUs } from '../core/duration.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { checkOptions, checkWhole } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import type { WaitOptions } from './verbs.ts'

/** Outlook is the least known wait, and the refusal for a call for which it is too long. */
export interface Outlook {
  readonly waitUs: number
  readonly refusal: Decision
}

/**
 * outlookOf predicts the wait for `cost` with `ahead` units queued before it, from a decision. Holds
 * may end at any time, so rules that hold units predict no wait.
 */
export function outlookOf(
  seen: Decision,
  rules: readonly Rule[],
  ahead: number,
  cost: number,
): Outlook {
  const { allowed, source } = seen
  // A decision that was not counted says nothing about the rules.
  const isCounted = source !== 'open' && source !== 'closed'
  const isByRules = isCounted && source !== 'blocked'
  let waitUs = usOf(allowed ? seen.delayMs : isByRules ? 0 : seen.retryAfterMs)
  rules.forEach((rule, i) => {
    if (!isCounted || rule.algorithm.holds) return
    const { retryAfterMs, resetAfterMs, remaining } = seen.rules[i]
    const [retryUs, resetUs] = [usOf(retryAfterMs), usOf(resetAfterMs)]
    const lineUs = rule.algorithm.lineUs(rule, retryUs, resetUs, remaining, ahead, cost)
    waitUs = Math.max(waitUs, retryUs, lineUs)
  })
  const retryAfterMs = Math.max(seen.retryAfterMs, waitUs / 1_000)
  return { waitUs, refusal: { ...seen, allowed: false, retryAfterMs, delayMs: 0 } }
}

/** usOf converts milliseconds to whole microseconds. */
export function usOf(ms: number): number {
  return Math.round(ms * 1_000)
}

/** admitted returns the decision of a finished wait, or throws if it is a refusal. */
export function admitted(key: string, decision: Decision): Decision {
  if (decision.allowed) return decision
  throw new SluiceError(
    'SLUICE_WAIT_TOO_LONG',
    `the turn of ${shown(key)} is ${Math.ceil(decision.retryAfterMs)} ms away, beyond maxWaitMs, or ` +
      'maxWaiting calls are in line. Try later, or raise them.',
    { decision },
  )
}

const WAIT_OPTIONS = ['signal', 'maxWaitMs', 'maxWaiting', 'priority', 'tier']

/** checkWait fills in the options of a verb that waits. Throws if its signal has aborted. */
export function checkWait(where: string, options: WaitOptions) {
  checkOptions(where, options, WAIT_OPTIONS)
  const { signal, maxWaitMs = 30_000, maxWaiting = 1_000, priority = 0, tier } = options
  const maxWaitUs = durationUs(`${where}: maxWaitMs`, maxWaitMs, 0, CENTURY_MS)
  checkWhole(`${where}: maxWaiting`, maxWaiting, 0, Number.MAX_SAFE_INTEGER)
  checkWhole(`${where}: priority`, priority, -1_000, 1_000)
  checkSignal(where, signal)
  signal?.throwIfAborted()
  const call = tier === undefined ? undefined : { tier }
  return { signal, maxWaitUs, maxWaiting, priority, call }
}

/** Throws unless `signal` is an AbortSignal or undefined. */
function checkSignal(where: string, signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return
  throw new SluiceError(
    'SLUICE_OPTION',
    `${where}: signal must be an AbortSignal, got ${shown(signal)}.`,
  )
}
