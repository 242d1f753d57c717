import type { IncomingMessage } from 'node:http'
import { Transform } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { problem } from '../problem.ts'

const OVERSIZED = new Error('the body is too large')

/** sized passes so many bytes on, and then fails: a body need not say how long it is. */
export function sized(mostBytes: number): Transform {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > mostBytes) done(OVERSIZED)
      else done(null, chunk)
    },
  })
}

/** isOversized tells whether `sized` has failed. */
export function isOversized(body: Transform | null): boolean {
  return body?.errored === OVERSIZED
}

/** hangUp is for when nobody reads on: a client that is told so must stop sending. */
export function hangUp(request: FastifyRequest, reply: FastifyReply): void {
  if (reply.raw.headersSent) reply.raw.destroy()
  else reply.raw.once('finish', () => request.raw.destroy())
}

/** hasStrayBody finds what hardly anybody sends, and no proxy passes on reliably. */
export function hasStrayBody({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  return length !== '0' || encoding !== undefined
}

/** strayBody and tooLarge are what clients are told. */
export const strayBody = problem(
  400,
  'A body of a GET or HEAD request is not passed on. Send it with POST or QUERY.',
)
export const tooLarge = problem(413, 'The body is larger than this gateway passes on.')
