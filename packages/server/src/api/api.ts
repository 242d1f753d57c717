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

/** ApiOptions are what the API is made of; `current` may change between two requests. */
export interface ApiOptions {
  readonly logger: Logger
  readonly version: string
  current(): {
    readonly limits: Limits
    readonly settings: Pick<Settings, 'admin' | 'routes' | 'clients' | 'overrides'>
  }
  /** Why requests should not be sent here, or undefined if all is well. */
  notReady(): string | undefined
  metrics(): Promise<{ readonly text: string; readonly type: string }>
  top(count: number): Promise<readonly object[]>
  reload(): Promise<void>
  onDecision(told: ApiDecision): void
  /** A refusal of a cost that no rule could ever admit. */
  onUndecided(told: { readonly route: string; readonly reason: string }): void
  /** A charge or a refund that was made. */
  onSettled(told: { readonly route: string; readonly verb: 'charge' | 'refund' }): void
  /** What else is served here, with the way to guard it. */
  add?(app: FastifyInstance, guard: AccessGuard): void
}

/** ApiDecision is a decision that was asked for; `seconds` is how long it took, if by itself. */
export interface ApiDecision {
  readonly route: string
  readonly key: string
  /** The tier that was asked for, in place of the key's own. */
  readonly tier: string | undefined
  readonly cost: number
  readonly decision: Decision
  /** Refused by a rule, and let through: the route is in shadow mode. */
  readonly shadowed: boolean
  readonly seconds: number | undefined
}

/** AccessGuard makes a hook that lets only those through who may. */
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
  // Web pages can send text anywhere without asking; JSON they cannot.
  app.removeContentTypeParser('text/plain')
  const guard: AccessGuard = (wanted) => (request, reply, next) => {
    const told = forbids(request.raw, wanted, current().settings.admin)
    if (told) send(reply, told)
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
    send(reply, problem(404, `There is no ${request.method} ${request.url} here.`)),
  )
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) =>
    send(reply, problemOf(error, logger)),
  )
  return app
}

/** Mistakes of the caller are told; what is wrong here is not for strangers. */
function problemOf(error: Error & { statusCode?: number }, logger: Logger): Problem {
  if (error instanceof SluiceError) {
    return problem(statuses[error.code] ?? 400, error.message, { code: error.code })
  }
  if ('problems' in error) return problem(422, error.message, { problems: error.problems })
  const status = error.statusCode ?? 500
  if (status === 415) return problem(415, 'Send JSON, with Content-Type: application/json.')
  if (status < 500) return problem(status, error.message)
  logger.error(error)
  return problem(500, 'Something is wrong here.')
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

/** Answers with a problem. */
function send(reply: FastifyReply, told: Problem): FastifyReply {
  return reply.code(told.status).type(PROBLEM_TYPE).send(problemText(told))
}
