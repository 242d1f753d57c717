import type { RouteSettings } from '../settings.ts'
import { readingsOf } from './path.ts'

/** Asked has the parts of a request by which routes are matched. */
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

/** createRouter returns a function that finds the first route that matches a request. */
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
 * A limit applies to every path that some server may read as its own. An open route is an exception
 * from limits: it applies only to paths that are spelt exactly so, and read so by all servers.
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

/** Servers run the code of GET for HEAD, so a limit for GET applies to both. */
function isFor(methods: readonly string[], method: string, isOpen: boolean): boolean {
  return methods.includes(method) || (method === 'HEAD' && !isOpen && methods.includes('GET'))
}

/** As with paths: a limit applies if some server reads the value, an exception if all do. */
function hasValue(readings: readonly string[], value: string, isOpen: boolean): boolean {
  if (isOpen) return readings.length > 0 && readings.every((each) => each === value)
  return readings.includes(value)
}

/** `*` matches one segment, `**` at the end any number of segments. */
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

/** isHostText tells whether a text is a plain host: another spelling could bypass routes. */
export function isHostText(text: string): boolean {
  return /^([\w-]+(\.[\w-]+)*\.?|\[[\da-f:.]+\])(:\d*)?$/i.test(text)
}

function matchesHost(wanted: string, given: string | undefined): boolean {
  const host = given?.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
  if (host === undefined) return false
  return wanted.startsWith('*.') ? host.endsWith(wanted.slice(1)) : host === wanted
}

/** isCatchAll tells whether a route matches every request. */
export function isCatchAll({ path, methods, host, headers }: RouteSettings): boolean {
  const isAny = methods.length === 0 && host === '' && Object.keys(headers).length === 0
  return path === '/**' && isAny
}
