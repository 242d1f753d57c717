import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { type Problem, problem } from '../problem.ts'

/** The number of chunks that any body may have, and the bytes that permit one more. */
const FREE_CHUNKS = 16_384
const BYTES_PER_CHUNK = 64

/**
 * A chunk of this size or more is passed on alone; smaller ones are joined with their neighbours.
 */
const LARGE_BYTES = 4_096

const OVERSIZED = new Error('the body is too large')
const CHOPPED = new Error('the body has too many small chunks')
const BROKEN_OFF = new Error('the body ended early')

/**
 * sized passes the body of a request on, and fails when it is larger than `mostBytes` or has too
 * many chunks: each chunk costs the same time, however small it is. Chunks that arrive together are
 * passed on as one.
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
      // Discard the rest of a complete body for the next request; read nothing more of others.
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
    // The chunks of one socket read are all delivered before that.
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
  // A `close` event follows, which `leave` handles.
  request.on('error', () => {})
  return body
}

/** bodyFault is the response when `sized` has failed with the body. */
export function bodyFault(body: Readable | null): Problem | undefined {
  if (body?.errored === OVERSIZED) return tooLarge
  return body?.errored === CHOPPED ? tooManyChunks : undefined
}

/** bodyProblem checks a body by its headers; undefined if it may be passed on. */
export function bodyProblem(request: IncomingMessage, mostBytes: number): Problem | undefined {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers
  if (Number(length) > mostBytes) return tooLarge
  const isBare = request.method === 'GET' || request.method === 'HEAD'
  // Rare, and not passed on reliably by proxies, so refused instead of dropped.
  if (isBare && (length !== '0' || coding !== undefined)) return strayBody
  // Node decodes chunked, and would pass on other codings without the header that names them.
  return coding === undefined || coding.toLowerCase() === 'chunked' ? undefined : otherCoding
}

const tooLarge = problem(413, 'The body is larger than this gateway accepts.')
const tooManyChunks = problem(400, 'The body has too many small chunks. Send larger chunks.')
const strayBody = problem(
  400,
  'A GET or HEAD request must not have a body. Send it with POST or QUERY.',
)
const otherCoding = problem(501, 'The only supported transfer coding is chunked.')
