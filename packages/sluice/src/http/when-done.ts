import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** NodeRequest and NodeResponse are what of Node's tells that a response has ended. */
export type NodeRequest = Pick<IncomingMessage, 'socket' | 'httpVersionMajor'>
export type NodeResponse = Pick<ServerResponse, 'closed' | 'writableEnded' | 'once'>

/** What is called when a connection has gone. One listener for each connection, however many requests. */
const callsOf = new WeakMap<Socket, Set<() => void>>()

/**
 * whenDone calls `end` once, when a response is done or its connection has gone. `isWhole` tells whether
 * the handler had ended it.
 */
export function whenDone(
  { socket, httpVersionMajor }: NodeRequest,
  response: NodeResponse,
  end: (isWhole: boolean) => void,
): void {
  if (response.closed || socket.destroyed) {
    end(response.writableEnded)
    return
  }
  let isOpen = true
  const done = () => {
    if (!isOpen) return
    isOpen = false
    calls?.delete(done)
    end(response.writableEnded)
  }
  // A response that waits for its turn, or was given up for another protocol, is not told that its
  // connection has gone. Stand-ins for connections, and those of HTTP/2, are no emitters of their own.
  const isOwn = httpVersionMajor === 1 && typeof socket.once === 'function'
  const calls = isOwn ? callsFor(socket) : undefined
  calls?.add(done)
  response.once('close', done)
  // Some stand-ins for responses do not close.
  response.once('finish', done)
}

function callsFor(socket: Socket): Set<() => void> {
  let calls = callsOf.get(socket)
  if (!calls) {
    const own = new Set<() => void>()
    socket.once('close', () => {
      for (const call of own) call()
    })
    callsOf.set(socket, own)
    calls = own
  }
  return calls
}
