import type { RouteSettings } from '../settings.ts'

/** Asked is what routes are chosen by. */
export interface Asked {
  readonly method: string
  /** From `plainPath`. */
  readonly path: string
  readonly host: string | undefined
  header(name: string): string | undefined
}

/** createRouter finds the first route that is meant for a request. */
export function createRouter<R extends { readonly settings: RouteSettings }>(
  routes: readonly R[],
): (asked: Asked) => R | undefined {
  const matchers = routes.map((route) => ({ route, matches: matcherOf(route.settings) }))
  return (asked) => matchers.find(({ matches }) => matches(asked))?.route
}

function matcherOf({ methods, path, host, headers }: RouteSettings): (asked: Asked) => boolean {
  const pattern = patternOf(path)
  // To some servers a segment of nothing but parameters is one, and to others none.
  const fits = (given: string) =>
    pattern.test(given) || (given.includes('/;') && pattern.test(given.replaceAll('/;', '')))
  const wanted = Object.entries(headers)
  return (asked) =>
    (methods.length === 0 || methods.includes(asked.method)) &&
    fits(asked.path) &&
    (host === '' || matchesHost(host, asked.host)) &&
    wanted.every(([name, value]) => asked.header(name) === value)
}

/** `*` is one segment, `**` at the end any number of them. A slash at the end does not matter. */
function patternOf(path: string): RegExp {
  const segments = path.toLowerCase().split('/').slice(1)
  const isOpen = segments.at(-1) === '**'
  const fixed = isOpen ? segments.slice(0, -1) : segments
  const source = fixed
    .filter((segment) => segment !== '')
    .map(
      (segment) => `/${segment === '*' ? '[^/]+' : segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`,
    )
    .join('')
  return new RegExp(`^${source}${isOpen ? '(?:/.*)?' : '/?'}$`, 's')
}

function matchesHost(wanted: string, given: string | undefined): boolean {
  const host = given?.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
  if (host === undefined) return false
  return wanted.startsWith('*.') ? host.endsWith(wanted.slice(1)) : host === wanted
}
