import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { SluiceError } from 'sluice'

const CHUNK_BYTES = 64 * 1_024

/** sizesOf returns the total bytes of files; undefined if one has no size, such as a pipe. */
export async function sizesOf(files: readonly string[]): Promise<number | undefined> {
  let bytes = 0
  for (const file of files) {
    const found = await stat(file).catch(() => undefined)
    if (!found?.isFile()) return undefined
    bytes += found.size
  }
  return bytes
}

/**
 * openInput returns the bytes of a file, or of `input` for `-`, chunk by chunk. Gzip is detected by
 * its first bytes and unpacked. `onBytes` gets the number of bytes read, before unpacking. It
 * throws `SLUICE_OPTION` for input that cannot be read or unpacked.
 */
export async function* openInput(
  file: string,
  input: () => AsyncIterable<Buffer>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  const fromInput = file === '-'
  async function* counted(): AsyncGenerator<Buffer> {
    const bytes = fromInput ? input() : createReadStream(file, { highWaterMark: CHUNK_BYTES })
    for await (const chunk of bytes) {
      onBytes(chunk.length)
      yield chunk
    }
  }
  try {
    yield* unpacked(counted())
  } catch (cause) {
    const name = fromInput ? 'standard input' : JSON.stringify(file)
    throw new SluiceError(
      'SLUICE_OPTION',
      `cannot read ${name}: ${(cause as Error).message}. Give a readable log, plain or gzip.`,
      { cause },
    )
  }
}

async function* unpacked(chunks: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let start = Buffer.alloc(0)
  while (start.length < 2) {
    const { value, done } = await chunks.next()
    if (done) break
    start = Buffer.concat([start, value])
  }
  async function* all(): AsyncGenerator<Buffer> {
    yield start
    yield* chunks
  }
  if (start[0] !== 0x1f || start[1] !== 0x8b) return yield* all()
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  const source = Readable.from(all())
  source.on('error', (error) => gunzip.destroy(error))
  try {
    yield* source.pipe(gunzip)
  } finally {
    source.destroy()
  }
}
