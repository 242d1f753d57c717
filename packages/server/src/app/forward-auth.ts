import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AccessGuard } from '../api/api.ts'
import { headerReadings, unclearHeader } from '../gateway/identity.ts'
import { exactPath, plainPath } from '../gateway/path.ts'
import { type Asked, isHostText } from '../gateway/router.ts'
import type { Route } from '../gateway/routes.ts'

/**
 * addForwardAuth adds `/v1/auth`, which a proxy calls before it forwards a client's request: 200,
 * or the refusal. The client's request is in X-Forwarded-Method, -Uri and -Host (Traefik, Caddy) or
 * X-Original-Method and -URI (nginx). nginx turns every status but 401 and 403 into a 500: with
 * `/v1/auth?refuse=403` refusals have that status.
 */
export function addForwardAuth(
  app: FastifyInstance,
  guard: AccessGuard,
  find: (asked: Asked) => Route | undefined,
): void {
  app.register(async (scope) => {
    // Discards a body that the proxy passes on.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, payload, done) => {
      payload.resume()
      done(null)
    })
    scope.all('/v1/auth', { onRequest: guard('check') }, (request, reply) => {
      const urls = said(request, URLS)
      const methods = said(request, METHODS)
      const hosts = said(request, HOSTS)
      const path = urls.length === 1 ? plainPath(urls[0]) : undefined
      const isHost = hosts.length === 0 || (hosts.length === 1 && isHostText(hosts[0]))
      const refuse = () => reply.code(refusedWith(request.raw.url) ?? 400).send()
      // The proxy sets one of the names, once; contradicting values come from its client.
      if (path === undefined || methods.length > 1 || !isHost) return refuse()
      if (unclearHeader(request.raw, ASKED_FOR) !== undefined) return refuse()
      const route = find({
        method: methods[0] ?? 'GET',
        path,
        exact: exactPath(urls[0]),
        host: hosts[0],
        header: (name) => headerReadings(request.raw, name),
      })
      if (route && unclearHeader(request.raw, route.identity) !== undefined) return refuse()
      if (!route?.limit) return reply.code(200).send()
      // The limiter writes refusals to the response itself.
      reply.hijack()
      route.limit(request.raw, reply.raw, () => reply.raw.writeHead(200).end())
      return reply
    })
  })
}

const URLS = ['x-forwarded-uri', 'x-original-uri', 'x-original-url']
const METHODS = ['x-forwarded-method', 'x-original-method']
const HOSTS = ['x-forwarded-host', 'x-original-host']
const ASKED_FOR = [...URLS, ...METHODS, ...HOSTS]

/** The distinct values under any of these names. */
function said(request: FastifyRequest, names: readonly string[]): string[] {
  const values = names.map((name) => headerOf(request, name))
  return [...new Set(values.filter((value) => value !== undefined && value !== ''))] as string[]
}

/** refusedWith is the status that the proxy requests for refusals, if any. */
export function refusedWith(url: string | undefined): number | undefined {
  return /[?&]refuse=403(&|$)/.test(url ?? '') ? 403 : undefined
}

function headerOf({ raw: { headers } }: FastifyRequest, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
