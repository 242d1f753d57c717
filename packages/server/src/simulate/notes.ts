import type { RuleSetReport, Traffic } from './report.ts'
import { count, counted, part, span } from './shown.ts'

/** notesOf says what is special about a rule set's figures, a sentence each. */
export function notesOf(set: RuleSetReport): string[] {
  const { refused, shadowed, delayed, retries, evictions, longestDelayMs } = set
  return [
    ...(refused === 0 ? ['refuses nothing'] : []),
    ...(shadowed > 0
      ? [`of these ${part(shadowed, refused)} on routes in shadow, which refuse nobody`]
      : []),
    ...(delayed > 0
      ? [`${counted(delayed, 'request')} held, for ${span(longestDelayMs)} at most`]
      : []),
    ...(retries > 0
      ? [`${count(retries)} of the requests ${retries === 1 ? 'is a retry' : 'are retries'}`]
      : []),
    ...(evictions > 0
      ? [`${counted(evictions, 'state')} had to go: raise --max-clients for exact answers`]
      : []),
  ]
}

/** noSuggestion is said in place of suggestions. */
export function noSuggestion({ units }: Traffic): string {
  return `No limit to suggest: ${units === 0 ? 'all costs are 0' : 'the log is shorter than a second'}.`
}

/** clientsText is how many clients came, as far as they were followed. */
export function clientsText({ clients, untracked }: Traffic): string {
  return `${untracked > 0 ? 'more than ' : ''}${counted(clients, 'client')}`
}

/** WHOLE_SECONDS is said of a log without fractions of seconds. */
export const WHOLE_SECONDS =
  'times are whole seconds: rules for a few seconds or less, and bursts, look stricter than they are'

/** trafficNotes says what is left out of the figures of traffic. */
export function trafficNotes({ untracked }: Traffic): string[] {
  if (untracked === 0) return []
  return [
    `requests of clients beyond --max-clients: ${count(untracked)}`,
    '  they are decided, but left out of all that is told by client',
  ]
}
