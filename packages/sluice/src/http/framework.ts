import { warnOnce } from '../core/warn.ts'

/** Framework reads a client's address as a framework derives it by its own proxy setting. */
export interface Framework<Request> {
  /** Returns the setting's name for messages if it trusts any proxy; else undefined. */
  trusting(request: Request): string | undefined
  /**
   * Returns the framework's address, which the client can forge if the framework trusts all
   * proxies.
   */
  ip(request: Request): string | undefined
}

/** The part of Express's request that has the proxy setting. */
interface ExpressRequest {
  readonly app?: { get?(name: string): unknown }
  readonly ip?: string
}

/** ofExpress reads Express's proxy setting: `app.set('trust proxy', …)`. */
export const ofExpress: Framework<ExpressRequest> = {
  trusting: ({ app }) => (app?.get?.('trust proxy') ? "Express's `trust proxy`" : undefined),
  ip: ({ ip }) => ip,
}

/**
 * ofFastify reads Fastify's proxy setting: `fastify({ trustProxy })`. Requests have `ips` only with
 * it.
 */
export const ofFastify: Framework<{ readonly ip?: string; readonly ips?: unknown }> = {
  trusting: ({ ips }) => (ips === undefined ? undefined : "Fastify's `trustProxy`"),
  ip: ({ ip }) => ip,
}

/** ofKoa reads Koa's proxy setting: `app.proxy`. */
export const ofKoa: Framework<{ readonly app: { readonly proxy?: boolean }; readonly ip: string }> =
  {
    trusting: ({ app }) => (app.proxy ? "Koa's `app.proxy`" : undefined),
    ip: ({ ip }) => ip,
  }

/** warnOfProxies warns once that a framework trusts proxies, but `trustProxy` is not set. */
export function warnOfProxies(setting: string): void {
  warnOnce(
    'SLUICE_TRUST_PROXY',
    `rateLimit: ${setting} trusts proxies, and rateLimit was not told which: it counts each request ` +
      'by the address of its connection, so all clients behind a proxy share one limit. Give ' +
      "`trustProxy: 'framework'` to count by `request.ip`, or the number of your proxies, or a list " +
      'of their addresses. `trustProxy: 0` keeps the address of the connection, without this warning.',
  )
}
