import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { SluiceError } from 'sluice'
import { PROBLEM_TYPE, problem, problemText } from '../problem.ts'
import type { LiveAbout, LiveStart } from './live-event.ts'
import type { LiveHub } from './live-hub.ts'

/** LiveRouteOptions are the parts of the stream. */
export interface LiveRouteOptions {
  readonly hub: LiveHub
  /** What the dashboard shows of the configuration; another object after a change. */
  about(): LiveAbout
  /** Whether the caller may make changes. */
  mayChange(request: FastifyRequest): boolean
  /** Lets only callers with read access in. */
  readonly onRequest: (request: FastifyRequest, reply: FastifyReply, next: () => void) => void
}

const MOST_WATCHERS = 32
const LONGEST_KEY = 1_024
/** The number of seconds after which a watcher that does not read is dropped. */
const MOST_SKIPPED = 15

/**
 * addLive adds `GET /v1/live`, a stream of server-sent events: `start` first, `about` after a
 * change of the configuration, `second` every second, and with `?key=` also `key` with decisions
 * about it. A client that reads too slowly misses seconds, and is dropped in the end. At most 32
 * clients can watch at once.
 */
export function addLive(app: FastifyInstance, options: LiveRouteOptions): void {
  const { hub, about, mayChange, onRequest } = options
  const streams = new Set<ServerResponse>()
  app.addHook('preClose', (done) => {
    for (const stream of streams) stream.end()
    done()
  })

  app.get('/v1/live', { onRequest, exposeHeadRoute: false }, (request, reply) => {
    const key = keyOf(request.query as { key?: unknown })
    if (streams.size >= MOST_WATCHERS) {
      const full = problem(
        503,
        `The limit of ${MOST_WATCHERS} live streams is reached. Close a page, and try again.`,
      )
      return reply.code(503).type(PROBLEM_TYPE).send(problemText(full))
    }
    reply.hijack()
    const { raw } = reply
    streams.add(raw)
    raw.once('close', () => streams.delete(raw))
    let skipped = 0
    let sentAbout = about()
    const change = () => ({ ...sentAbout, mayChange: mayChange(request) })
    const send = (event: string, data: object) => {
      if (!raw.writableEnded) raw.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    }
    const watching = hub.watch({
      key,
      start(past) {
        raw.writeHead(200, FIELDS)
        const first: LiveStart = { ...change(), ...past }
        send('start', first)
      },
      news(news) {
        if (raw.writableNeedDrain) {
          skipped += 1
          if (skipped > MOST_SKIPPED) raw.destroy()
          return
        }
        skipped = 0
        if (about() !== sentAbout) {
          sentAbout = about()
          send('about', change())
        }
        send('second', news)
      },
      keyNews(news) {
        if (skipped === 0) send('key', news)
      },
    })
    watching.then(
      (unwatch) => (raw.closed ? unwatch() : raw.once('close', unwatch)),
      () => raw.destroy(),
    )
    return reply
  })
}

const FIELDS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  'x-content-type-options': 'nosniff',
}

function keyOf({ key }: { key?: unknown }): string | undefined {
  if (key === undefined) return undefined
  if (typeof key === 'string' && key !== '' && key.length <= LONGEST_KEY) return key
  throw new SluiceError('SLUICE_KEY', 'key must be given once, with 1 to 1,024 characters.')
}
