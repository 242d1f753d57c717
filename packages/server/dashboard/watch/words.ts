import type { LiveDecision } from '../../src/dashboard/live-event.ts'
import type { ShownRule } from '../../src/shown-rule.ts'

/** inWords formats a duration, such as `1.3 s` or `2 min 5 s`. */
export function inWords(ms: number): string {
  if (ms < 1) return `${(ms * 1_000).toFixed(0)} µs`
  if (ms < 100) return `${ms.toFixed(1)} ms`
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.ceil(ms / 1_000)
  const units = [
    ['d', Math.floor(seconds / 86_400)],
    ['h', Math.floor(seconds / 3_600) % 24],
    ['min', Math.floor(seconds / 60) % 60],
    ['s', seconds % 60],
  ] as const
  const first = units.findIndex(([, count]) => count > 0)
  const shown = units.slice(first, first + 2).filter(([, count]) => count > 0)
  return shown.map(([unit, count]) => `${count} ${unit}`).join(' ')
}

/** inFull formats a whole number, such as `12,345`. */
export function inFull(count: number): string {
  return Math.round(count).toLocaleString('en')
}

/** clockOf is the local time of day of the viewer. */
export function clockOf(ms: number): string {
  return new Date(ms).toLocaleTimeString(undefined, { hourCycle: 'h23' })
}

/** ruleInWords describes a rule. */
export function ruleInWords({ algorithm, limit, perMs, capacity, text }: ShownRule): string {
  if (limit === null || capacity === null) return 'no limit'
  const most = capacity === limit ? '' : `, at most ${inFull(capacity)} at once`
  // A month is no fixed number of days: `5000/month`.
  const word = /^\d+\/([a-z]+)/.exec(text)?.[1]
  return `${inFull(limit)} per ${word ?? inWords(perMs)}${most} (${algorithm})`
}

/** reasonOf explains a decision. */
export function reasonOf(decision: LiveDecision): string {
  const { outcome, rule, cost, remaining, retryAfterMs, source } = decision
  if (source === 'blocked') return `blocked for another ${inWords(retryAfterMs)}`
  if (source === 'closed') return 'refused: the store is unavailable'
  if (source === 'open') return 'allowed: the store is unavailable'
  const left = remaining === null ? 'no limit' : `${inFull(remaining)} left`
  const where = source === 'local' ? ', decided locally: the store is unavailable' : ''
  if (outcome === 'allowed') return `allowed: cost ${cost}, ${left} of rule ${rule}${where}`
  const figures = `cost ${cost}, ${left}, retry in ${inWords(retryAfterMs)}${where}`
  if (outcome === 'shadowed') return `rule ${rule} would have refused: ${figures}`
  return `rule ${rule} refused: ${figures}`
}
