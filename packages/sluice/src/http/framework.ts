import { warnOnce } from '../core/warn.ts'

/** Framework is how a framework finds the address of a client, by a setting of its own for proxies. */
export interface Framework<Request> {
  /** The setting, as messages call it, if it trusts any proxy; else undefined. */
  trusting(request: Request): string | undefined
  /** The address that the framework has found; whatever a client wrote if it trusts everybody. */
  ip(request: Request): string | undefined
}

/** The setting of Express for proxies, as far as it is used. */
interface ExpressRequest {
  readonly app?: { get?(name: string): unknown }
  readonly ip?: string
}

/** ofExpress is what Express has for proxies: `app.set('trust proxy', …)`. */
export const ofExpress: Framework<ExpressRequest> = {
  trusting: ({ app }) => (app?.get?.('trust proxy') ? "Express's `trust proxy`" : undefined),
  ip: ({ ip }) => ip,
}

/** ofFastify is what Fastify has: `fastify({ trustProxy })`. Only then do requests have `ips`. */
export const ofFastify: Framework<{ readonly ip?: string; readonly ips?: unknown }> = {
  trusting: ({ ips }) => (ips === undefined ? undefined : "Fastify's `trustProxy`"),
  ip: ({ ip }) => ip,
}

/** ofKoa is what Koa has: `app.proxy`. */
export const ofKoa: Framework<{ readonly app: { readonly proxy?: boolean }; readonly ip: string }> =
  {
    trusting: ({ app }) => (app.proxy ? "Koa's `app.proxy`" : undefined),
    ip: ({ ip }) => ip,
  }

/** warnOfProxies warns once that a framework trusts proxies, and `rateLimit` was not told of any. */
export function warnOfProxies(setting: string): void {
  warnOnce(
    'SLUICE_TRUST_PROXY',
    `rateLimit: ${setting} trusts proxies, and rateLimit was not told which: it counts each request ` +
      'by the address of its connection, so all clients behind a proxy share one limit. Give ' +
      "`trustProxy: 'framework'` to count by `request.ip`, or the number of your proxies, or a list " +
      'of their addresses. `trustProxy: 0` keeps the address of the connection, without this warning.',
  )
}
