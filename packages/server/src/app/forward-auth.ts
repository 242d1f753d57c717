import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Guard } from '../api/api.ts'
import { exactPath, plainPath } from '../gateway/path.ts'
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
  app.register(async (scope) => {
    // Whatever the client's body was to be, it is not for us.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, payload, done) => {
      payload.resume()
      done(null)
    })
    scope.all('/v1/auth', { onRequest: guard('check') }, (request, reply) => {
      const urls = said(request, 'x-forwarded-uri', 'x-original-uri', 'x-original-url')
      const methods = said(request, 'x-forwarded-method', 'x-original-method')
      const hosts = said(request, 'x-forwarded-host', 'x-original-host')
      const path = urls.length === 1 ? plainPath(urls[0]) : undefined
      // A proxy writes one of the names; who contradicts it under another is its client.
      if (path === undefined || methods.length > 1 || hosts.length > 1) {
        return reply.code(refusedWith(request.raw.url) ?? 400).send()
      }
      const route = find({
        method: methods[0] ?? 'GET',
        path,
        exact: exactPath(urls[0]),
        host: hosts[0],
        header: (name) => headerOf(request, name),
      })
      if (!route?.limit) return reply.code(200).send()
      // A refusal is written to the response itself.
      reply.hijack()
      route.limit(request.raw, reply.raw, () => reply.raw.writeHead(200).end())
      return reply
    })
  })
}

/** What is said under any of these names, each thing once. */
function said(request: FastifyRequest, ...names: string[]): string[] {
  const values = names.map((name) => headerOf(request, name))
  return [...new Set(values.filter((value) => value !== undefined && value !== ''))] as string[]
}

/** refusedWith is the status that a proxy wants refusals to have, if it wants another than ours. */
export function refusedWith(url: string | undefined): number | undefined {
  return /[?&]refuse=403(&|$)/.test(url ?? '') ? 403 : undefined
}

function headerOf({ raw: { headers } }: FastifyRequest, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
