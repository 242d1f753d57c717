import type { RouteReport, RuleSetReport, Traffic } from './report.ts'
import { count, counted, part, plain, span } from './shown.ts'

/** notesOf returns remarks on the figures of a rule set, a sentence each. */
export function notesOf(set: RuleSetReport): string[] {
  const { requests, refused, shadowed, open, lost, leftOut } = set
  const { delayed, retries, evictions, longestDelayMs } = set
  return [
    ...(refused === 0 ? ['refuses nothing'] : []),
    ...(shadowed > 0
      ? [`of these ${part(shadowed, refused)} on routes in shadow mode, which refuse no request`]
      : []),
    ...(open > 0 ? [`${part(open, requests)} on open routes, where nothing is counted`] : []),
    ...(lost > 0
      ? [`${part(lost, requests)} that match no route: 404 or 400, and not counted`]
      : []),
    ...(leftOut.length > 0 ? [`ignored: ${leftOut.join(', ')}`] : []),
    ...(delayed > 0
      ? [`${counted(delayed, 'request')} delayed, by ${span(longestDelayMs)} at most`]
      : []),
    ...(retries > 0
      ? [`${count(retries)} of the requests ${retries === 1 ? 'is a retry' : 'are retries'}`]
      : []),
    ...(evictions > 0
      ? [`${counted(evictions, 'state')} evicted: raise --max-clients for exact results`]
      : []),
  ]
}

/** noSuggestion says why there are no suggestions. */
export function noSuggestion({ units }: Traffic): string {
  return `No limit to suggest: ${units === 0 ? 'all costs are 0' : 'the log is shorter than a second'}.`
}

/** clientsText is the number of clients, as far as they were tracked. */
export function clientsText({ clients, untracked }: Traffic): string {
  return `${untracked > 0 ? 'more than ' : ''}${counted(clients, 'client')}`
}

/** WHOLE_SECONDS is the remark on a log without fractions of seconds. */
export const WHOLE_SECONDS =
  'times are whole seconds: rules for a few seconds or less, and bursts, look stricter than they are'

/** trafficNotes says which requests are left out of the figures by client. */
export function trafficNotes({ untracked }: Traffic): string[] {
  if (untracked === 0) return []
  return [
    `requests of clients beyond --max-clients: ${count(untracked)}`,
    '  they are decided, but left out of the figures by client',
  ]
}

/** hasRoutes tells whether figures by route add to those of all requests. */
export function hasRoutes({ byRoute }: RuleSetReport): boolean {
  return byRoute.length > 1 || byRoute.some(({ mode }) => mode !== 'limited')
}

/** routeName names a route and its mode. */
export function routeName({ route, mode }: RouteReport): string {
  return mode === 'limited' ? plain(route) : `${plain(route)} (${mode})`
}

/** refusedOf shows what a route refuses, or would refuse. */
export function refusedOf({ mode, refused, requests }: RouteReport): [string, string] {
  if (mode === 'open') return ['', '']
  return mode === 'shadow' ? ['', part(refused, requests)] : [part(refused, requests), '']
}
