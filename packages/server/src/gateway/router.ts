import type { RouteSettings } from '../settings.ts'
import { readingsOf } from './path.ts'

/** Asked is what routes are chosen by. */
export interface Asked {
  readonly method: string
  /** From `plainPath`. */
  readonly path: string
  /** From `exactPath`. */
  readonly exact: string
  readonly host: string | undefined
  /** From `headerReadings`. */
  header(name: string): readonly string[]
}

/** createRouter finds the first route that is meant for a request. */
export function createRouter<R extends { readonly settings: RouteSettings }>(
  routes: readonly R[],
): (asked: Asked) => R | undefined {
  const matchers = routes.map((route) => ({ route, matches: matcherOf(route.settings) }))
  return (asked) => {
    const readings = readingsOf(asked.path)
    return matchers.find(({ matches }) => matches(asked, readings))?.route
  }
}

type Matches = (asked: Asked, readings: readonly string[]) => boolean

/**
 * A limit holds for every path that some server may read as its own. An open route is an exception
 * from limits: it is only for paths that are spelt exactly so, and read so by all servers.
 */
function matcherOf({ methods, path, host, headers, isOpen }: RouteSettings): Matches {
  const pattern = new RegExp(`^${sourceOf(path.toLowerCase())}/?$`, 's')
  const exactly = new RegExp(`^${sourceOf(encodeURI(path))}${path.endsWith('/') ? '/' : ''}$`, 's')
  const fits = ({ exact }: Asked, readings: readonly string[]) => {
    if (!isOpen) return readings.some((each) => pattern.test(each))
    return exactly.test(exact) && readings.every((each) => pattern.test(each))
  }
  const wanted = Object.entries(headers)
  return (asked, readings) =>
    (methods.length === 0 || isFor(methods, asked.method, isOpen)) &&
    fits(asked, readings) &&
    (host === '' || matchesHost(host, asked.host)) &&
    wanted.every(([name, value]) => hasValue(asked.header(name), value, isOpen))
}

/** Servers run the code of GET for HEAD, so a limit for GET holds for both. */
function isFor(methods: readonly string[], method: string, isOpen: boolean): boolean {
  return methods.includes(method) || (method === 'HEAD' && !isOpen && methods.includes('GET'))
}

/** As of paths: a limit holds for what some server may read, an exception for what all do. */
function hasValue(readings: readonly string[], value: string, isOpen: boolean): boolean {
  if (isOpen) return readings.length > 0 && readings.every((each) => each === value)
  return readings.includes(value)
}

/** `*` is one segment, `**` at the end any number of them. */
function sourceOf(path: string): string {
  const segments = path.split('/').slice(1)
  const isBelow = segments.at(-1) === '**'
  const fixed = isBelow ? segments.slice(0, -1) : segments
  const source = fixed
    .filter((segment) => segment !== '')
    .map(
      (segment) => `/${segment === '*' ? '[^/]+' : segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`,
    )
    .join('')
  return isBelow ? `${source}(?:/.*)?` : source
}

/** isHostText tells whether a text is a host as clients send it: another spelling dodges routes. */
export function isHostText(text: string): boolean {
  return /^([\w-]+(\.[\w-]+)*\.?|\[[\da-f:.]+\])(:\d*)?$/i.test(text)
}

function matchesHost(wanted: string, given: string | undefined): boolean {
  const host = given?.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
  if (host === undefined) return false
  return wanted.startsWith('*.') ? host.endsWith(wanted.slice(1)) : host === wanted
}
