import type { IncomingMessage } from 'node:http'
import { SluiceError } from 'sluice'
import { exactPath, plainPath } from '../../gateway/path.ts'
import { routeKey } from '../../gateway/route-key.ts'
import { type Asked, createRouter, isCatchAll } from '../../gateway/router.ts'
import type { RouteSettings, Settings } from '../../settings.ts'
import type { PathNeed } from '../log/http-request.ts'
import type { LogRequest } from '../log/request.ts'

/** Spot is the route of a request in the gateway, and the key it would have there. */
export interface Spot {
  /** Undefined for a request that matches no route, and for a call of the API. */
  readonly route: RouteSettings | undefined
  /** Whether the log names the route. */
  readonly isTold: boolean
  /** Whether the gateway would answer 404 or 400 without a decision. */
  readonly isLost: boolean
  readonly key: string
  readonly cost: number
}

/** pathNeed tells whether the routes of a configuration need paths to be told apart. */
export function pathNeed({ routes }: Settings): PathNeed {
  if (isCatchAll(routes[0])) return 'unwanted'
  return fallbackOf(routes) ? 'wanted' : 'required'
}

/**
 * createPlaces finds the route of a request with the gateway's router: by the name in the log, or
 * else by path, method and host. It throws `SLUICE_OPTION` if the log lacks what is needed.
 */
export function createPlaces(file: string, { routes }: Settings): (request: LogRequest) => Spot {
  const byName = new Map(routes.map((route) => [route.name, route]))
  const find = createRouter(routes.map((settings) => ({ settings })))
  const fallback = fallbackOf(routes)
  const isOne = isCatchAll(routes[0])
  const readers = new Map(routes.map((route) => [route, keyReader(file, route)]))
  let current: LogRequest
  let path = ''

  const fail = (what: string, remedy: string): never => {
    throw new SluiceError('SLUICE_OPTION', `${file}: ${what}. ${remedy}`)
  }
  const asked: Asked = {
    get path() {
      return path
    },
    get exact() {
      return exactPath(current.http!.target)
    },
    get method() {
      const { method } = current.http!
      if (method !== undefined) return method
      return fail('a route matches by method, and the log has no methods', name('method'))
    },
    get host() {
      const { host } = current.http!
      if (host !== undefined) return host
      return fail('a route matches by host, and the log has no hosts', name('host'))
    },
    header: (header) =>
      fail(
        `a route for ${path} depends on the header ${header}, which logs do not have`,
        'Remove that route for the simulation, or give a decision log, which names routes.',
      ),
  }

  function routed(request: LogRequest): RouteSettings | undefined {
    current = request
    path = plainPath(request.http!.target) ?? ''
    return path === '' ? undefined : find(asked)?.settings
  }

  function unknown({ route }: LogRequest): never {
    const known = routes.map((each) => JSON.stringify(each.name)).join(', ')
    if (route === undefined) {
      return fail(
        'limits depend on the path of requests, and the input has no paths',
        `Give an access log, a decision log, or JSON or CSV with --path-field NAME.`,
      )
    }
    return fail(
      `the log names the route ${JSON.stringify(route)}, which is unknown, and has no path. Known: ${known}`,
      'Name the routes as in the log.',
    )
  }

  const at = (request: LogRequest, route: RouteSettings, isTold: boolean): Spot => {
    // Open routes count nothing, whatever the client.
    const isKey = request.isKey || route.isOpen
    const key = isKey ? request.key : readers.get(route)!(request.key)
    const cost = request.isCost ? request.cost : route.cost
    return { route, isTold, isLost: false, key, cost }
  }

  return (request) => {
    const { key, cost, route: named, http } = request
    if (named === '') return { route: undefined, isTold: true, isLost: false, key, cost }
    const route = named === undefined ? undefined : byName.get(named)
    if (route) return at(request, route, true)
    if (isOne) return at(request, routes[0], true)
    if (http) {
      const found = routed(request)
      if (found) return at(request, found, true)
      return { route: undefined, isTold: true, isLost: true, key, cost }
    }
    return fallback ? at(request, fallback, false) : unknown(request)
  }
}

const name = (field: string) =>
  `Name the field with --${field}-field (json and csv), or give a decision log, which names routes.`

/** The route that stands for all routes if they differ in their upstreams only. */
function fallbackOf(routes: readonly RouteSettings[]): RouteSettings | undefined {
  const last = routes.findIndex(isCatchAll)
  const treatment = ({ cost, key, shadow, isOpen }: RouteSettings) =>
    JSON.stringify([cost, key, shadow, isOpen])
  const isSame = (route: RouteSettings) =>
    !route.rules &&
    !route.key.some(({ from }) => from === 'route') &&
    treatment(route) === treatment(routes[last])
  return routes.slice(0, last + 1).every(isSame) ? routes[last] : undefined
}

/** Makes the key of a route from an address; logs lack the other parts of keys. */
function keyReader(file: string, route: RouteSettings): (address: string) => string {
  const foreign = route.key.find(({ from }) => from !== 'address' && from !== 'route')
  if (foreign) {
    const part = 'name' in foreign ? `${foreign.from}:${foreign.name}` : foreign.from
    return () => {
      throw new SluiceError(
        'SLUICE_OPTION',
        `${file}: the route ${JSON.stringify(route.name)} counts by ${part}, which the log does not have. ` +
          'Give a decision log, or name the field that has such keys with --key-field.',
      )
    }
  }
  let known = ''
  const read = routeKey(route, { addressOf: () => known, tokens: undefined })
  // Keys of addresses and names of routes only: no header is read.
  const nothing = {} as IncomingMessage
  return (address) => {
    known = address
    return read(nothing) as string
  }
}
