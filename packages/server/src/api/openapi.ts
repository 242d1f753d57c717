/** One operation of the API: what it is for, and what it takes. */
interface Operation {
  readonly summary: string
  readonly body?: object
  readonly query?: Readonly<Record<string, string>>
  /** Who may call it; everybody if left out. */
  readonly access?: 'check' | 'read' | 'full'
}

const check = {
  type: 'object',
  required: ['key'],
  additionalProperties: false,
  properties: {
    key: { type: 'string', minLength: 1, maxLength: 1_024 },
    cost: { type: 'integer', minimum: 0, maximum: 10_000_000, default: 1 },
    tier: { type: 'string', description: 'in place of the tier of the key' },
    route: { type: 'string', description: 'a route with rules of its own' },
  },
}
const batch = {
  type: 'object',
  required: ['checks'],
  properties: { checks: { type: 'array', maxItems: 1_000, items: check } },
}
const one = (name: string, description: string) => ({
  type: 'object',
  required: [name],
  additionalProperties: false,
  properties: { [name]: { type: 'string', description } },
})

/** operations are all of the API: path and method → what it is. */
export const operations: Readonly<Record<string, Readonly<Record<string, Operation>>>> = {
  '/v1/check': {
    post: { summary: 'Decide, and spend', body: { oneOf: [check, batch] }, access: 'check' },
  },
  '/v1/auth': { get: { summary: 'Decide for a proxy that asks first', access: 'check' } },
  '/v1/keys': {
    get: {
      summary: 'Keys that are not fresh, of all limiters or one, page by page',
      query: {
        ...{ filter: 'string', limiter: 'string', blocked: 'boolean' },
        ...{ from: 'integer', count: 'integer' },
      },
      access: 'read',
    },
    delete: { summary: 'Forget what everybody has used', access: 'full' },
  },
  '/v1/keys/{key}': {
    get: { summary: 'What is left, and whether cost 1 would pass; spends nothing', access: 'read' },
    delete: { summary: 'Forget what a key has used, and lift its block', access: 'full' },
  },
  '/v1/keys/{key}/block': {
    post: { summary: 'Block a key', body: one('duration', "such as '10m'"), access: 'full' },
    delete: { summary: 'Lift a block', access: 'full' },
  },
  '/v1/clients': {
    get: {
      summary: 'Clients with a tier or rules of their own, given at run time or configured',
      query: { filter: 'string', from: 'integer', count: 'integer' },
      access: 'read',
    },
  },
  '/v1/clients/{key}/tier': {
    put: { summary: 'Give a client a tier', body: one('tier', 'its name'), access: 'full' },
    delete: { summary: 'Take it back', access: 'full' },
  },
  '/v1/clients/{key}/rules': {
    put: {
      summary: 'Give a client rules of its own',
      body: one('rules', "such as '100/1m burst 20'; also a list"),
      access: 'full',
    },
    delete: { summary: 'Take them back', access: 'full' },
  },
  '/v1/top': {
    get: { summary: 'Who is refused most', query: { count: 'integer' }, access: 'read' },
  },
  '/v1/live': {
    get: {
      summary: 'What happens, as server-sent events: start, about, second, and key for one key',
      query: { key: 'string' },
      access: 'read',
    },
  },
  '/v1/reload': { post: { summary: 'Read the configuration again', access: 'full' } },
  '/v1/openapi.json': { get: { summary: 'This document' } },
  '/metrics': { get: { summary: 'Metrics for Prometheus', access: 'read' } },
  '/healthz': { get: { summary: 'Whether the process is alive' } },
  '/readyz': { get: { summary: 'Whether requests should be sent here' } },
}

/** openApi is the description of the API for tools (OpenAPI 3.1). */
export function openApi(version: string): object {
  const paths = Object.entries(operations).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, each]) => [method, described(path, each)]),
    ),
  ])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version,
      description: 'Decisions about who may go ahead, and what operators need.',
    },
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      responses: {
        problem: {
          description: 'What is wrong (RFC 9457)',
          content: { 'application/problem+json': { schema: { type: 'object' } } },
        },
      },
    },
    paths: Object.fromEntries(paths),
  }
}

function described(path: string, { summary, body, query = {}, access }: Operation): object {
  const inPath = path.includes('{key}')
    ? [{ name: 'key', in: 'path', required: true, schema: { type: 'string' } }]
    : []
  const inQuery = Object.entries(query).map(([name, type]) => ({
    name,
    in: 'query',
    schema: { type },
  }))
  return {
    summary,
    parameters: [...inPath, ...inQuery],
    ...(body ? { requestBody: { content: { 'application/json': { schema: body } } } } : {}),
    ...(access ? { security: [{ token: [] }, {}] } : {}),
    responses: {
      200: { description: 'Done' },
      default: { $ref: '#/components/responses/problem' },
    },
  }
}
