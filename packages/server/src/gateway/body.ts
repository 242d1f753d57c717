import type { IncomingMessage } from 'node:http'
import { Transform } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, problem } from '../problem.ts'

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
  if (reply.raw.headersSent) return void reply.raw.destroy()
  reply.header('connection', 'close')
  reply.raw.once('finish', () => request.raw.destroy())
}

/** bodyProblem is what is wrong with a body by what its head says, if anything. */
export function bodyProblem(request: IncomingMessage, mostBytes: number): Problem | undefined {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers
  if (Number(length) > mostBytes) return tooLarge
  const isBare = request.method === 'GET' || request.method === 'HEAD'
  // What hardly anybody sends, and no proxy passes on reliably; better said than lost.
  if (isBare && (length !== '0' || coding !== undefined)) return strayBody
  // Node undoes chunked, and would leave the others to an upstream that is not told of them.
  return coding === undefined || coding.toLowerCase() === 'chunked' ? undefined : otherCoding
}

/** tooLarge is what clients are told whose body is, also if that shows only on the way. */
export const tooLarge = problem(413, 'The body is larger than this gateway passes on.')
const strayBody = problem(
  400,
  'A body of a GET or HEAD request is not passed on. Send it with POST or QUERY.',
)
const otherCoding = problem(501, 'Chunked is the only transfer coding that is understood here.')
