import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { type Problem, problem } from '../problem.ts'

/** Chunks that any body may have, and how many bytes allow one more. */
const FREE_CHUNKS = 16_384
const BYTES_PER_CHUNK = 64

/** From this size on a chunk goes on by itself; smaller ones are joined with what comes with them. */
const LARGE_BYTES = 4_096

const OVERSIZED = new Error('the body is too large')
const CHOPPED = new Error('the body has too many small chunks')
const BROKEN_OFF = new Error('the body was broken off')

/**
 * sized passes the body of a request on, and fails when it is larger than `mostBytes` or has too
 * many chunks: each chunk costs the same time, however small it is. What comes at once goes on at
 * once, in one piece.
 */
export function sized(request: IncomingMessage, mostBytes: number): Readable {
  let bytes = 0
  let chunks = 0
  let waiting: Buffer[] = []
  const body = new Readable({
    read: () => void request.resume(),
    destroy(error, done) {
      request.off('data', take).off('end', end).off('close', leave)
      waiting = []
      // The rest of a whole body is in the way of the next request; of others nothing more is read.
      if (request.complete) request.resume()
      else request.pause()
      done(error)
    },
  })

  function take(chunk: Buffer): void {
    bytes += chunk.length
    chunks += 1
    if (bytes > mostBytes) return void body.destroy(OVERSIZED)
    if (chunks > FREE_CHUNKS + bytes / BYTES_PER_CHUNK) return void body.destroy(CHOPPED)
    waiting.push(chunk)
    if (waiting.length > 1) return
    if (chunk.length >= LARGE_BYTES) flush()
    // All chunks of one read come before that.
    else setImmediate(flush)
  }
  function flush(): void {
    if (waiting.length === 0) return
    const all = waiting.length === 1 ? waiting[0] : Buffer.concat(waiting)
    waiting = []
    if (!body.push(all)) request.pause()
  }
  function end(): void {
    flush()
    body.push(null)
  }
  function leave(): void {
    if (!request.readableEnded) body.destroy(BROKEN_OFF)
  }

  request.on('data', take).once('end', end).once('close', leave)
  // Node tells of it with `close`, too.
  request.on('error', () => {})
  return body
}

/** bodyFault is what a client is told whose body `sized` has failed with. */
export function bodyFault(body: Readable | null): Problem | undefined {
  if (body?.errored === OVERSIZED) return tooLarge
  return body?.errored === CHOPPED ? tooManyChunks : undefined
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

const tooLarge = problem(413, 'The body is larger than this gateway passes on.')
const tooManyChunks = problem(400, 'The body has too many small chunks. Send larger ones.')
const strayBody = problem(
  400,
  'A body of a GET or HEAD request is not passed on. Send it with POST or QUERY.',
)
const otherCoding = problem(501, 'Chunked is the only transfer coding that is understood here.')
