import { SluiceError } from 'sluice'
import type { Outcome } from '../../decided.ts'
import { httpOf, type PathNeed } from './http-request.ts'
import { createTimeReader } from './read-time.ts'
import { type HttpRequest, type LogRequest, requestOf } from './request.ts'

/** FieldNames are the fields that the user named; what is missing is looked for. */
export interface FieldNames {
  readonly time?: string | undefined
  readonly key?: string | undefined
  readonly cost?: string | undefined
  readonly tier?: string | undefined
  readonly path?: string | undefined
  readonly method?: string | undefined
  readonly host?: string | undefined
}

/** The names that are looked for, the first that a line has counts from then on. */
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

/** isUsual tells whether a name is one that is looked for, as the time or the key. */
export function isUsual(of: 'time' | 'key', name: string): boolean {
  return USUAL[of].includes(name)
}

/** Look gives the value of a field of the line at hand; undefined when it has none. */
export type Look = (name: string) => unknown

/** FieldReader turns the fields of a line into a request. */
export interface FieldReader {
  read(look: Look): LogRequest | string
  /** The names in use, for the report; undefined before the first line that has them. */
  names(): FieldNames
}

/**
 * createFieldReader reads lines that are made of named fields. A field that was not named is the
 * first usual one that some line has, and stays it: keys of two kinds are never mixed. With
 * `costsOfRoutes` the cost of a line with a route is what that cost on its day, unless the API was
 * asked.
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

  /** As `fieldOf`, but what is no text is not what is looked for. */
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
      if (typeof key !== 'string' && typeof key !== 'number') return 'the key is no text or number'
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
          // Callers of the API say a cost; the gateway takes that of the route.
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

/** An empty one says something: the decision was asked for over the API. */
function routeOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function outcomeOf(value: unknown): Outcome | undefined {
  return value === 'allowed' || value === 'refused' || value === 'shadowed' ? value : undefined
}
