import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** NodeRequest and NodeResponse are the parts of Node's types that report the end of a response. */
export type NodeRequest = Pick<IncomingMessage, 'socket' | 'httpVersionMajor'>
export type NodeResponse = Pick<ServerResponse, 'closed' | 'writableEnded' | 'once'>

/** The callbacks for the close of a connection, which has one listener for all its requests. */
const callsOf = new WeakMap<Socket, Set<() => void>>()

/**
 * whenDone calls `end` once, when a response is finished or its connection is closed. `isWhole`
 * tells whether the handler had ended it.
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
  // A response that is queued behind others, or replaced by another protocol, gets no close event
  // when its
  // connection closes. Mock connections, and those of HTTP/2, do not emit events of their own.
  const isOwn = httpVersionMajor === 1 && typeof socket.once === 'function'
  const calls = isOwn ? callsFor(socket) : undefined
  calls?.add(done)
  response.once('close', done)
  // Some mock responses do not emit `close`.
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
