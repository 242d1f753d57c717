import { readFileSync } from 'node:fs'
import { type IncomingHttpHeaders, request } from 'node:http'
import type { RouteSettings, Settings } from '../../packages/server/src/settings.ts'
import { type Nginx, startNginx } from './nginx.ts'
import { closeAll, serveUpstream, settingsOf, start } from './service.ts'

/** The configuration in the document, and its fail-open addition. */
const [shown, addition] = [
  ...readFileSync('docs/operate/forward-auth.md', 'utf8').matchAll(/^```nginx\n(.*?)^```$/gms),
].map(([, text]) => text)

/** failOpen is the document's addition that forwards requests while the service does not answer. */
export const failOpen = addition

const stops: (() => Promise<void>)[] = []

/** stopAll stops everything that `startAll` has started. */
export async function stopAll(): Promise<void> {
  for (const stop of stops.splice(0)) await stop()
  await closeAll()
}

/** Answer is a response through nginx. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Ask is a client's request. */
export interface Ask {
  /** The client's address. */
  readonly from?: string
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

/** ask sends a path exactly as it is. */
export function ask(
  { port }: Nginx,
  path: string,
  { from = '127.0.0.2', body, ...more }: Ask = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, localAddress: from, agent: false, ...more }
    const asked = request(options, async (response) => {
      let body = ''
      for await (const text of response.setEncoding('utf8')) body += text
      resolve({ status: response.statusCode!, headers: response.headers, body })
    })
    asked.once('error', reject).end(body)
  })
}

/** swap replaces a part of the document, which must occur exactly once. */
export function swap(text: string, from: string, to: string): string {
  if (text.split(from).length !== 2) throw new Error(`the document must have "${from}" once`)
  return text.replace(from, to)
}

export const token = 'a'.repeat(20)
export const tokens = [{ token, access: 'read' as const }]
export const routes: Partial<RouteSettings>[] = [
  { path: '/limited/**', key: [{ from: 'address' }] },
]

/** Differences from the document and from the default settings. */
interface Setup {
  readonly settings?: Partial<Settings>
  readonly routes?: Partial<RouteSettings>[]
  /** A URL to use in place of the service. */
  readonly apiUrl?: string
  readonly edit?: (text: string) => string
}

/** startAll starts the service, an upstream, and nginx with the document's configuration. */
export async function startAll(setup: Setup = {}) {
  const upstream = await serveUpstream((request, response) => {
    response.statusCode = request.url === '/limited/broken' ? 403 : 200
    request.pipe(response)
  })
  const service = await start(settingsOf(setup.settings ?? {}, setup.routes ?? routes))
  const nginx = await startNginx((port) => {
    let text = swap(shown, '127.0.0.1:8081', new URL(setup.apiUrl ?? service.apiUrl).host)
    text = swap(text, '127.0.0.1:3000', new URL(upstream.url).host)
    text = swap(text, 'listen 80;', `listen 127.0.0.1:${port};`)
    return setup.edit ? setup.edit(text) : text
  })
  stops.push(() => nginx.stop())
  return { nginx, service, upstream }
}
