import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Bodies up to this length are discarded, and the connection of a refused client is kept. */
const SHORT_BYTES = 65_536

/** For how long a client that sends a long body may go on before it has read the refusal. */
const LINGER_MS = 5_000

const hungUp = new WeakSet<Socket>()

/**
 * hasHungUp tells whether a request came too late: its connection has gone, or the gateway is about
 * to close it. Such a request is neither decided nor passed on.
 */
export function hasHungUp({ socket }: IncomingMessage): boolean {
  return socket.destroyed || hungUp.has(socket)
}

/** isLong tells whether a body is too much to discard, does not say its length, or waits for `100`. */
export function isLong({ headers }: IncomingMessage): boolean {
  return (
    headers.expect !== undefined ||
    headers['transfer-encoding'] !== undefined ||
    Number(headers['content-length'] ?? 0) > SHORT_BYTES
  )
}

/** hangUp closes the connection after this response; one that has begun is broken off. */
export function hangUp({ raw }: FastifyRequest, reply: FastifyReply): void {
  if (reply.raw.headersSent) return void reply.raw.destroy()
  hungUp.add(raw.socket)
  reply.header('connection', 'close')
}

/** closeIfLong changes a refusal: a client with a long body is told to stop sending it. */
export function closeIfLong(request: IncomingMessage) {
  if (!isLong(request)) return undefined
  hungUp.add(request.socket)
  return { fields: [['connection', 'close']] as const }
}

/**
 * addLingering closes connections so that clients can read the last response. With unread data in
 * its buffer the kernel would reset the connection, and the client might lose the response. So the
 * gateway closes its side first and discards what still comes: at most `mostBytes`, for five seconds.
 */
export function addLingering(server: Server, mostBytes: number): void {
  const known = new WeakSet<Socket>()
  const latest = new WeakMap<Socket, IncomingMessage>()

  server.on('connection', (socket) => {
    // Node remembers the address that it was asked for, also when the connection has gone.
    if (socket.remoteAddress === undefined) return void socket.destroy()
    // `addUpgrades` hands connections back.
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
 * discard parses nothing more of what a client sends on a connection. The gateway hangs up when the
 * responses before are done, or after `mostBytes`.
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
  // Node may have stopped reading for want of room in the body, behind the back of the stream.
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
