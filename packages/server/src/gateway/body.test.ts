import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { bodyFault, sized } from './body.ts'

/** The result for a body that arrives in these pieces, all at once. */
async function passed(pieces: readonly Buffer[], mostBytes = 10_000_000) {
  const request = Object.assign(new PassThrough(), { complete: true })
  const body = sized(request as unknown as IncomingMessage, mostBytes)
  const sizes: number[] = []
  body.on('data', ({ length }) => sizes.push(length))
  const end = new Promise<void>((resolve) => body.once('close', resolve).on('error', () => {}))
  for (const piece of pieces) request.write(piece)
  request.end()
  await end
  return { sizes, status: bodyFault(body)?.status }
}

const pieces = (count: number, bytes: number) => Array<Buffer>(count).fill(Buffer.alloc(bytes))

describe('the body of a request', () => {
  it('is passed on in one piece if it arrives at once', async () =>
    expect(await passed(pieces(500, 1))).toEqual({ sizes: [500], status: undefined }))

  it.each([
    [10, 10, undefined],
    [11, 10, 413],
  ])('of %i bytes, with a limit of %i, is answered with %s', async (bytes, most, status) =>
    expect((await passed(pieces(bytes, 1), most)).status).toBe(status),
  )

  it.each([
    [16_644, 1, undefined],
    [16_645, 1, 400],
    [30_000, 64, undefined],
    [30_000, 20, 400],
  ])('of %i chunks of %i bytes is answered with %s', async (count, bytes, status) =>
    expect((await passed(pieces(count, bytes))).status).toBe(status),
  )
})
