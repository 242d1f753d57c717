import { chargeAnswer, checkAnswer, checkBody, refundAnswer, settleBody } from './schemas.ts'

/** One operation of the API. */
interface Operation {
  readonly summary: string
  readonly body?: object
  /** The schema of its 200 response. */
  readonly answer?: object
  readonly query?: Readonly<Record<string, string>>
  /** Who may call it; if left out, no access is needed. */
  readonly access?: 'check' | 'read' | 'full'
}

const one = (name: string, description: string) => ({
  type: 'object',
  required: [name],
  additionalProperties: false,
  properties: { [name]: { type: 'string', description } },
})

/** operations lists the whole API: path and method → operation. */
export const operations: Readonly<Record<string, Readonly<Record<string, Operation>>>> = {
  '/v1/check': {
    post: {
      summary: 'Decide, and spend the cost if allowed',
      ...{ body: checkBody, answer: checkAnswer, access: 'check' },
    },
  },
  '/v1/charge': {
    post: {
      summary: 'Debit units unconditionally; the debt must refill before requests pass again',
      ...{ body: settleBody, answer: chargeAnswer, access: 'check' },
    },
  },
  '/v1/refund': {
    post: {
      summary: 'Return units of a recent spend, at most what the key has used',
      ...{ body: settleBody, answer: refundAnswer, access: 'full' },
    },
  },
  '/v1/auth': { get: { summary: 'Decide for a proxy (forward auth)', access: 'check' } },
  '/v1/keys': {
    get: {
      summary: 'List keys in use, of all limiters or one, page by page',
      query: {
        ...{ filter: 'string', limiter: 'string', blocked: 'boolean' },
        ...{ from: 'integer', count: 'integer' },
      },
      access: 'read',
    },
    delete: { summary: 'Reset all keys', access: 'full' },
  },
  '/v1/keys/{key}': {
    get: {
      summary: 'Show what is left, and what each limiter and route would decide; spends nothing',
      access: 'read',
    },
    delete: { summary: 'Reset a key, and lift its block', access: 'full' },
  },
  '/v1/keys/{key}/block': {
    post: { summary: 'Block a key', body: one('duration', "such as '10m'"), access: 'full' },
    delete: { summary: 'Lift a block', access: 'full' },
  },
  '/v1/clients': {
    get: {
      summary: 'List clients with their own tier or rules, assigned at run time or configured',
      query: { filter: 'string', from: 'integer', count: 'integer' },
      access: 'read',
    },
  },
  '/v1/clients/{key}/tier': {
    put: {
      summary: 'Assign a tier to a client',
      body: one('tier', 'the name of the tier'),
      access: 'full',
    },
    delete: { summary: 'Remove the assigned tier', access: 'full' },
  },
  '/v1/clients/{key}/rules': {
    put: {
      summary: 'Assign rules to a client, in place of its tier',
      body: one('rules', "such as '100/1m burst 20', or a list of rules"),
      access: 'full',
    },
    delete: { summary: 'Remove the assigned rules', access: 'full' },
  },
  '/v1/top': {
    get: {
      summary: 'List the top clients by refusals',
      query: { count: 'integer' },
      access: 'read',
    },
  },
  '/v1/live': {
    get: {
      summary: 'Live traffic as server-sent events: start, about, second, and key for one key',
      query: { key: 'string' },
      access: 'read',
    },
  },
  '/v1/reload': { post: { summary: 'Reload the configuration', access: 'full' } },
  '/v1/openapi.json': { get: { summary: 'This document' } },
  '/metrics': { get: { summary: 'Metrics for Prometheus', access: 'read' } },
  '/healthz': { get: { summary: 'Liveness probe' } },
  '/readyz': { get: { summary: 'Readiness probe' } },
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
      description: 'Rate-limit decisions, administration and metrics.',
    },
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      responses: {
        problem: {
          description: 'An error (RFC 9457)',
          content: { 'application/problem+json': { schema: { type: 'object' } } },
        },
      },
    },
    paths: Object.fromEntries(paths),
  }
}

function described(path: string, operation: Operation): object {
  const { summary, body, answer, query = {}, access } = operation
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
    ...(body ? { requestBody: { required: true, ...inJson(body) } } : {}),
    ...(access ? { security: [{ token: [] }, {}] } : {}),
    responses: {
      200: { description: 'Success', ...(answer ? inJson(answer) : {}) },
      default: { $ref: '#/components/responses/problem' },
    },
  }
}

function inJson(schema: object): object {
  return { content: { 'application/json': { schema } } }
}
