import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type Decision, SluiceError } from 'sluice'
import type { Limits } from '../limits.ts'
import { PROBLEM_TYPE, type Problem, problem, problemText } from '../problem.ts'
import type { Settings } from '../settings.ts'
import { type Access, forbids } from './access.ts'
import { addCheck } from './check.ts'
import { addClients } from './clients.ts'
import { addKeys } from './keys.ts'
import { openApi } from './openapi.ts'
import { refuseUnknownQueries } from './queries.ts'
import { addSettle } from './settle.ts'

/** ApiOptions are the parts of the API; `current` may change between two requests. */
export interface ApiOptions {
  readonly logger: Logger
  readonly version: string
  current(): {
    readonly limits: Limits
    readonly settings: Pick<Settings, 'admin' | 'routes' | 'clients' | 'overrides'>
  }
  /** Why the service is not ready for requests, or undefined if it is. */
  notReady(): string | undefined
  metrics(): Promise<{ readonly text: string; readonly type: string }>
  top(count: number): Promise<readonly object[]>
  reload(): Promise<void>
  onDecision(decided: ApiDecision): void
  /** A refusal of a cost above the capacity of a rule. */
  onUndecided(refusal: { readonly route: string; readonly reason: string }): void
  /** A charge or a refund that has been made. */
  onSettled(settlement: { readonly route: string; readonly verb: 'charge' | 'refund' }): void
  /** Adds more routes, with the guard of the API. */
  add?(app: FastifyInstance, guard: AccessGuard): void
}

/** ApiDecision is a decision for a caller; `seconds` is its duration, undefined within a batch. */
export interface ApiDecision {
  readonly route: string
  readonly key: string
  /** The tier that the call names, instead of the key's own. */
  readonly tier: string | undefined
  readonly cost: number
  readonly decision: Decision
  /** Refused by a rule, but let through since the route is in shadow mode. */
  readonly shadowed: boolean
  readonly seconds: number | undefined
}

/** AccessGuard makes a hook that lets only authorized callers through. */
export type AccessGuard = (
  wanted: Access,
) => (request: FastifyRequest, reply: FastifyReply, next: () => void) => void

/** createApi is the decision API, the admin API, health and metrics. */
export async function createApi(options: ApiOptions): Promise<FastifyInstance> {
  const { logger, current } = options
  const app = fastify({
    bodyLimit: 1_048_576,
    requestTimeout: 10_000,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 6_144 },
    onProtoPoisoning: 'error',
    frameworkErrors: (error, _request, reply) => void send(reply, problem(400, error.message)),
  })
  // A web page may send text/plain to any origin without a preflight, but not JSON.
  app.removeContentTypeParser('text/plain')
  const guard: AccessGuard = (wanted) => (request, reply, next) => {
    const denied = forbids(request.raw, wanted, current().settings.admin)
    if (denied) send(reply, denied)
    else next()
  }

  refuseUnknownQueries(app)

  app.get('/v1/openapi.json', () => openApi(options.version))
  app.get('/healthz', () => ({ status: 'ok' }))
  app.get('/readyz', (_request, reply) => {
    const reason = options.notReady()
    if (reason === undefined) return reply.send({ status: 'ready' })
    return send(reply, problem(503, reason))
  })
  app.get('/metrics', { onRequest: guard('read') }, async (_request, reply) => {
    const { text, type } = await options.metrics()
    return reply.type(type).send(text)
  })
  app.get('/v1/top', { onRequest: guard('read') }, async (request) => {
    const { count = '20' } = request.query as { count?: string }
    return { keys: await options.top(wholeOf('count', count, 1, 1_000)) }
  })
  app.post('/v1/reload', { onRequest: guard('full') }, async () => {
    await options.reload()
    return { reloaded: true }
  })
  addCheck(app, guard, options)
  addSettle(app, guard, options)
  addKeys(app, guard, current)
  addClients(app, guard, current)
  options.add?.(app, guard)

  app.setNotFoundHandler((request, reply) =>
    send(reply, problem(404, `There is no ${request.method} ${request.url}.`)),
  )
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) =>
    send(reply, problemOf(error, logger)),
  )
  return app
}

/** Describes mistakes of the caller; details of internal errors go to the log only. */
function problemOf(error: Error & { statusCode?: number }, logger: Logger): Problem {
  if (error instanceof SluiceError) {
    return problem(statuses[error.code] ?? 400, error.message, { code: error.code })
  }
  if ('problems' in error) return problem(422, error.message, { problems: error.problems })
  const status = error.statusCode ?? 500
  if (status === 415) return problem(415, 'Send JSON, with Content-Type: application/json.')
  if (status < 500) return problem(status, error.message)
  logger.error(error)
  return problem(500, 'Internal error.')
}

const statuses: Record<string, number> = {
  SLUICE_STORE_UNAVAILABLE: 503,
  SLUICE_NOT_LISTABLE: 501,
  SLUICE_STORE_FULL: 507,
}

/** wholeOf reads a number from a query. */
export function wholeOf(name: string, text: string, least: number, most: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new SluiceError(
    'SLUICE_OPTION',
    `${name} must be a whole number from ${least} to ${most}, got ${JSON.stringify(text)}.`,
  )
}

/** Sends a problem. */
function send(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).type(PROBLEM_TYPE).send(problemText(problem))
}
