import { chargeAnswer, checkAnswer, checkBody, refundAnswer, settleBody } from './schemas.ts'

/** One operation of the API: what it is for, and what it takes. */
interface Operation {
  readonly summary: string
  readonly body?: object
  /** The schema of what it answers with 200. */
  readonly answer?: object
  readonly query?: Readonly<Record<string, string>>
  /** Who may call it; everybody if left out. */
  readonly access?: 'check' | 'read' | 'full'
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
    post: {
      summary: 'Decide, and spend',
      ...{ body: checkBody, answer: checkAnswer, access: 'check' },
    },
  },
  '/v1/charge': {
    post: {
      summary: 'Take units even if they do not fit; the debt has to refill first',
      ...{ body: settleBody, answer: chargeAnswer, access: 'check' },
    },
  },
  '/v1/refund': {
    post: {
      summary: 'Give units of a recent spend back, as far as the key had used them',
      ...{ body: settleBody, answer: refundAnswer, access: 'full' },
    },
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
      200: { description: 'Done', ...(answer ? inJson(answer) : {}) },
      default: { $ref: '#/components/responses/problem' },
    },
  }
}

function inJson(schema: object): object {
  return { content: { 'application/json': { schema } } }
}
