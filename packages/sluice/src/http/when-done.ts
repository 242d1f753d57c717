import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** NodeResponse is what of Node's responses tells that they have ended. */
export type NodeResponse = Pick<ServerResponse, 'closed' | 'writableEnded' | 'req' | 'once'>

/** What is called when a connection has gone. One listener for each connection, however many requests. */
const callsOf = new WeakMap<Socket, Set<() => void>>()

/**
 * whenDone calls `end` once, when a response is done or its connection has gone. `isWhole` tells whether
 * the handler had ended it.
 */
export function whenDone(response: NodeResponse, end: (isWhole: boolean) => void): void {
  const { socket, httpVersionMajor } = response.req
  if (response.closed || socket.destroyed) {
    end(response.writableEnded)
    return
  }
  const done = () => {
    calls?.delete(done)
    end(response.writableEnded)
  }
  // A response that waits for its turn, or was given up for another protocol, is not told that its
  // connection has gone.
  const calls = httpVersionMajor < 2 ? callsFor(socket) : undefined
  calls?.add(done)
  response.once('close', done)
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
