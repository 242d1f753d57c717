import { SluiceError } from 'sluice'
import type { Outcome } from '../../decided.ts'
import { httpOf, type PathNeed } from './http-request.ts'
import { createTimeReader } from './read-time.ts'
import { type HttpRequest, type LogRequest, requestOf } from './request.ts'

/** FieldNames are the fields that the user named; the others are detected. */
export interface FieldNames {
  readonly time?: string | undefined
  readonly key?: string | undefined
  readonly cost?: string | undefined
  readonly tier?: string | undefined
  readonly path?: string | undefined
  readonly method?: string | undefined
  readonly host?: string | undefined
}

/** The usual names of fields; the first one that a line has is used from then on. */
const USUAL = {
  time: 'time timestamp ts @timestamp date datetime time_iso8601 time_local msec'.split(' '),
  key: (
    'key client client_id client_ip clientip ip remote_addr remoteAddress remote_ip ' +
    'req.remoteAddress req.ip address user user_id x_user api_key'
  ).split(' '),
  cost: ['cost', 'units'],
  tier: ['tier', 'plan'],
  path: 'path url uri request_uri request_path req.url request url.path'.split(' '),
  method: 'method request_method http_method req.method verb'.split(' '),
  host: 'http_host host vhost req.headers.host'.split(' '),
}

/** isUsual tells whether a name is a usual one for the time or the key. */
export function isUsual(of: 'time' | 'key', name: string): boolean {
  return USUAL[of].includes(name)
}

/** Look returns the value of a field of the current line; undefined if it has none. */
export type Look = (name: string) => unknown

/** FieldReader turns the fields of a line into a request. */
export interface FieldReader {
  read(look: Look): LogRequest | string
  /** The names in use, for the report; undefined before the first line that has them. */
  names(): FieldNames
}

/**
 * createFieldReader reads lines with named fields. A field that the user did not name is the first
 * usual one in some line, and stays the same: different kinds of keys are never mixed. With
 * `costsOfRoutes` the cost in a line with a route is ignored, because the route's cost applies,
 * except for calls of the API.
 */
export function createFieldReader(
  given: FieldNames,
  paths: PathNeed = 'unwanted',
  costsOfRoutes = false,
): FieldReader {
  for (const [field, name] of Object.entries(given)) {
    if (name === '') throw new SluiceError('SLUICE_OPTION', `--${field}-field must not be empty.`)
  }
  const names: { -readonly [name in keyof FieldNames]: FieldNames[name] } = { ...given }
  const readTime = createTimeReader()

  function fieldOf(field: keyof FieldNames, look: Look): unknown {
    const name = names[field]
    if (name !== undefined) return look(name)
    for (const candidate of USUAL[field]) {
      const value = look(candidate)
      if (value === undefined) continue
      names[field] = candidate
      return value
    }
    return undefined
  }

  /** Like `fieldOf`, but ignores values that are not strings. */
  function textField(field: 'path' | 'method' | 'host', look: Look): string | undefined {
    return textOf(fieldOf(field, (name) => textOf(look(name))))
  }

  function httpRequest(look: Look): HttpRequest | undefined {
    const path = textField('path', look)
    if (path === undefined) return undefined
    return httpOf(path, textField('method', look)?.toUpperCase(), textField('host', look))
  }

  const missing = (field: 'time' | 'key' | 'path') =>
    names[field] === undefined
      ? `it has none of the usual fields for the ${field}: name it with --${field}-field`
      : `it has no field ${JSON.stringify(names[field])} for the ${field}`

  const missingPath = () => `routes of the configuration depend on the path, and ${missing('path')}`

  return {
    names: () => names,
    read(look) {
      const time = fieldOf('time', look)
      if (time === undefined) return missing('time')
      const key = fieldOf('key', look)
      if (key === undefined || key === null) return missing('key')
      if (typeof key !== 'string' && typeof key !== 'number')
        return 'the key is not a string or a number'
      const cost = fieldOf('cost', look)
      const hasCost = cost !== undefined && cost !== null && cost !== ''
      const route = routeOf(look('route'))
      const http = paths === 'unwanted' ? undefined : httpRequest(look)
      if (paths === 'required' && !http && route === undefined) return missingPath()
      return requestOf(
        readTime(time),
        typeof key === 'string' ? key : String(key),
        hasCost ? numberOf(cost) : 1,
        {
          tier: textOf(fieldOf('tier', look)),
          route,
          outcome: outcomeOf(look('outcome')),
          http,
          isKey: given.key !== undefined || names.key === 'key',
          // Callers of the API choose the cost; in the gateway it is that of the route.
          isCost: hasCost && (!costsOfRoutes || !route || look('api') === true),
        },
      )
    },
  }
}

function numberOf(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** An empty route means a call of the API. */
function routeOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function outcomeOf(value: unknown): Outcome | undefined {
  return value === 'allowed' || value === 'refused' || value === 'shadowed' ? value : undefined
}
