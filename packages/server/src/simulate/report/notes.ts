import type { RouteReport, RuleSetReport, Traffic } from './report.ts'
import { count, counted, part, plain, span } from './shown.ts'

/** notesOf says what is special about a rule set's figures, a sentence each. */
export function notesOf(set: RuleSetReport): string[] {
  const { requests, refused, shadowed, open, lost, leftOut } = set
  const { delayed, retries, evictions, longestDelayMs } = set
  return [
    ...(refused === 0 ? ['refuses nothing'] : []),
    ...(shadowed > 0
      ? [`of these ${part(shadowed, refused)} on routes in shadow, which refuse no request`]
      : []),
    ...(open > 0 ? [`${part(open, requests)} on open routes, where nothing is counted`] : []),
    ...(lost > 0
      ? [`${part(lost, requests)} that no route is meant for: 404 or 400, and not counted`]
      : []),
    ...(leftOut.length > 0 ? [`not looked at: ${leftOut.join(', ')}`] : []),
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

/** hasRoutes tells whether there is more to say of routes than of all requests together. */
export function hasRoutes({ byRoute }: RuleSetReport): boolean {
  return byRoute.length > 1 || byRoute.some(({ mode }) => mode !== 'limited')
}

/** routeName names a route, and how far it refuses. */
export function routeName({ route, mode }: RouteReport): string {
  return mode === 'limited' ? plain(route) : `${plain(route)} (${mode})`
}

/** refusedOf says what a route refuses, or would refuse. */
export function refusedOf({ mode, refused, requests }: RouteReport): [string, string] {
  if (mode === 'open') return ['', '']
  return mode === 'shadow' ? ['', part(refused, requests)] : [part(refused, requests), '']
}
