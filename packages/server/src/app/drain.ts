import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** The longest that anybody waits for requests under way. */
export const DRAIN_MS = 30_000

/**
 * createDrain gives the way to close a server when its last request is done: connections without
 * one are closed at once, and when `performance.now()` is `endMs` all that are left, whatever is
 * spoken on them.
 */
export function createDrain(app: FastifyInstance): (endMs: number) => Promise<void> {
  const { server } = app
  // Node forgets connections that no longer speak HTTP, but waits for them.
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    if (sockets.has(socket)) return
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return async (endMs) => {
    const idle = setInterval(() => server.closeIdleConnections(), 20)
    const late = setTimeout(() => {
      for (const socket of sockets) socket.destroy()
    }, endMs - performance.now())
    await app.close()
    clearInterval(idle)
    clearTimeout(late)
  }
}
