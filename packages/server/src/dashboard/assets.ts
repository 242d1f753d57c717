import { readdirSync, readFileSync } from 'node:fs'
import { extname, posix } from 'node:path'
import type { FastifyInstance, FastifyReply } from 'fastify'

/** All content comes from this origin, nothing is inline, and no page may be framed. */
const POLICY = [
  "default-src 'none'",
  ...['script-src', 'style-src', 'img-src', 'connect-src'].map((source) => `${source} 'self'`),
  ...['base-uri', 'form-action', 'frame-ancestors'].map((source) => `${source} 'none'`),
].join('; ')

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The output of `npm run build`, beside `src` and `dist`. */
const builtPages = new URL('../../dist-dashboard/', import.meta.url)

const NOT_BUILT = `The dashboard has not been built. Run: npm run build
The API works: see /v1/openapi.json.
`

/**
 * addAssets serves the dashboard at `/` and the playground at `/play`. The files are read once at
 * the start, and a request can only name one of them (no path traversal). The names of assets carry
 * a hash, so browsers cache them for good; pages are revalidated each time.
 */
export function addAssets(app: FastifyInstance, folder: URL = builtPages): void {
  const files = read(folder)
  const send = (reply: FastifyReply, path: string): FastifyReply => {
    const isPage = path.endsWith('.html')
    return reply
      .headers({
        'content-security-policy': POLICY,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': isPage ? 'no-cache' : 'public, max-age=31536000, immutable',
      })
      .type(TYPES[extname(path)])
      .send(files.get(path))
  }
  for (const [url, page] of [
    ['/', 'index.html'],
    ['/play', 'play.html'],
  ]) {
    app.get(url, (_request, reply) =>
      files.has(page) ? send(reply, page) : reply.code(503).type('text/plain').send(NOT_BUILT),
    )
  }
  for (const path of files.keys()) {
    if (!path.endsWith('.html')) app.get(`/${path}`, (_request, reply) => send(reply, path))
  }
}

/** Files by path; none if the folder does not exist. */
function read(folder: URL): ReadonlyMap<string, Buffer> {
  const files = new Map<string, Buffer>()
  let names: string[]
  try {
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return files
    throw error
  }
  for (const name of names) {
    const path = name.split('\\').join(posix.sep)
    if (extname(path) in TYPES) files.set(path, readFileSync(new URL(path, folder)))
  }
  return files
}
