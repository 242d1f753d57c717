import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Bodies up to this length are discarded, and the connection of a refused client is kept. */
const SHORT_BYTES = 65_536

/** How long a client may go on sending a body after its refusal, so that it can read that. */
const LINGER_MS = 5_000

const hungUp = new WeakSet<Socket>()

/**
 * hasHungUp tells whether a request came too late: its connection is closed, or the gateway is
 * about to close it. Such a request is neither decided nor passed on.
 */
export function hasHungUp({ socket }: IncomingMessage): boolean {
  return socket.destroyed || hungUp.has(socket)
}

/**
 * isLong tells whether a body is too long to discard, has no length, or waits for `100 Continue`.
 */
export function isLong({ headers }: IncomingMessage): boolean {
  return (
    headers.expect !== undefined ||
    headers['transfer-encoding'] !== undefined ||
    Number(headers['content-length'] ?? 0) > SHORT_BYTES
  )
}

/** hangUp closes the connection after this response, or at once if the response has begun. */
export function hangUp({ raw }: FastifyRequest, reply: FastifyReply): void {
  if (reply.raw.headersSent) return void reply.raw.destroy()
  hungUp.add(raw.socket)
  reply.header('connection', 'close')
}

/** closeIfLong adds `Connection: close` to the refusal of a long body, so that the client stops. */
export function closeIfLong(request: IncomingMessage) {
  if (!isLong(request)) return undefined
  hungUp.add(request.socket)
  return { fields: [['connection', 'close']] as const }
}

/**
 * addLingering closes connections so that clients can read the last response. With unread data in
 * its buffer the kernel would reset the connection, and the client might lose the response. So the
 * gateway closes its side first and discards what still comes: at most `mostBytes`, for five
 * seconds.
 */
export function addLingering(server: Server, mostBytes: number): void {
  const known = new WeakSet<Socket>()
  const latest = new WeakMap<Socket, IncomingMessage>()

  server.on('connection', (socket) => {
    // Node caches the address once it is read, also for a connection that has closed.
    if (socket.remoteAddress === undefined) return void socket.destroy()
    // `addUpgrades` emits `connection` again for the same socket.
    if (known.has(socket)) return
    known.add(socket)
    const destroySoon = socket.destroySoon.bind(socket)
    // Node calls it after a response with `Connection: close`.
    socket.destroySoon = () => {
      if (latest.get(socket)?.complete === false) linger(socket, mostBytes)
      else destroySoon()
    }
  })
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    latest.set(socket, request)
    if (!isLong(request)) return
    response.once('finish', () => {
      if (!request.complete) linger(socket, mostBytes)
    })
  })
}

const discarding = new WeakSet<Socket>()

/**
 * discard stops parsing what a client sends on a connection. The gateway closes it when the
 * earlier responses are done, or after `mostBytes`.
 */
export function discard(socket: Socket, mostBytes: number): void {
  if (discarding.has(socket) || socket.destroyed) return
  discarding.add(socket)
  let left = mostBytes
  socket.removeAllListeners('data')
  socket.on('data', ({ length }) => {
    left -= length
    if (left < 0) socket.destroy()
  })
  socket.resume()
  // Node may have paused reading for backpressure of the body, without the stream's knowledge.
  socket._read(0)
}

const lingering = new WeakSet<Socket>()

function linger(socket: Socket, mostBytes: number): void {
  if (lingering.has(socket)) return
  lingering.add(socket)
  hungUp.add(socket)
  socket.once('end', () => socket.destroy())
  socket.end()
  discard(socket, mostBytes)
  const late = setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.once('close', () => clearTimeout(late))
}
