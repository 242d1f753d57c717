import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Guard } from '../api/api.ts'
import { plainPath } from '../gateway/path.ts'
import type { Asked } from '../gateway/router.ts'
import type { Route } from '../gateway/routes.ts'

/**
 * addForwardAuth adds `/v1/auth`, where a proxy asks whether a request of its client may go ahead:
 * 200, or the refusal. What the client asked for is in X-Forwarded-Method, -Uri and -Host (Traefik,
 * Caddy) or X-Original-Method and -URI (nginx). nginx takes every status but 401 and 403 for its own
 * failure: with `/v1/auth?refuse=403` refusals have that status.
 */
export function addForwardAuth(
  app: FastifyInstance,
  guard: Guard,
  find: (asked: Asked) => Route | undefined,
): void {
  app.all('/v1/auth', { onRequest: guard('check') }, (request, reply) => {
    const first = (...names: string[]) => names.map((name) => headerOf(request, name)).find(Boolean)
    const url = first('x-forwarded-uri', 'x-original-uri', 'x-original-url')
    const path = url === undefined ? undefined : plainPath(url)
    if (path === undefined) return reply.code(refusedWith(request.raw.url) ?? 400).send()
    const route = find({
      method: first('x-forwarded-method', 'x-original-method') ?? 'GET',
      path,
      host: first('x-forwarded-host', 'x-original-host'),
      header: (name) => headerOf(request, name),
    })
    if (!route?.limit) return reply.code(200).send()
    // A refusal is written to the response itself.
    reply.hijack()
    route.limit(request.raw, reply.raw, () => reply.raw.writeHead(200).end())
    return reply
  })
}

/** refusedWith is the status that a proxy wants refusals to have, if it wants another than ours. */
export function refusedWith(url: string | undefined): number | undefined {
  return url?.endsWith('?refuse=403') ? 403 : undefined
}

function headerOf({ raw: { headers } }: FastifyRequest, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
