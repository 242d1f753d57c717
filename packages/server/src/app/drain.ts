import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** The longest time that shutdown waits for requests in progress. */
export const DRAIN_MS = 30_000

/**
 * createDrain returns a function that drains a server: it closes idle connections at once, and the
 * others after their last request. When `performance.now()` reaches `endMs` it closes all that are
 * left, whatever their protocol.
 */
export function createDrain(app: FastifyInstance): (endMs: number) => Promise<void> {
  const { server } = app
  // Node no longer tracks upgraded connections, but waits for them.
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
