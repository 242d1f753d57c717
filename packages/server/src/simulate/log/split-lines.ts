import { isUtf8 } from 'node:buffer'

const NEWLINE = 10
const BYTE_ORDER_MARK = '\ufeff'

/** LineSink gets the lines of an input, numbered from 1. */
export interface LineSink {
  line(text: string, number: number): void
  /** A line that is not UTF-8, or too long. */
  broken(number: number, reason: string): void
}

/** LineSplitter splits chunks into lines. */
export interface LineSplitter {
  feed(chunk: Buffer): void
  /** Ends the input: a last line without a newline counts, too. */
  end(): void
}

/**
 * createLineSplitter decodes whole blocks of lines at once, for speed. Lines end in `\n` or `\r\n`;
 * a line over `maxLineBytes`, by default 1 MiB, is never buffered whole. The lines are slices of a
 * block: copy one to keep it.
 */
export function createLineSplitter(sink: LineSink, maxLineBytes = 1_048_576): LineSplitter {
  let number = 0
  let carried: Buffer[] = []
  let carriedBytes = 0
  /** Within a line that is too long. */
  let skipping = false

  function broken(reason: string): void {
    number += 1
    sink.broken(number, reason)
  }

  function tooLong(): void {
    broken(`it is longer than ${maxLineBytes.toLocaleString('en')} bytes`)
  }

  function carry(piece: Buffer): void {
    if (skipping || piece.length === 0) return
    // A copy, because streams may reuse the buffer.
    carried.push(Buffer.from(piece))
    carriedBytes += piece.length
    if (carriedBytes <= maxLineBytes) return
    skipping = true
    carried = []
    carriedBytes = 0
  }

  /** The incomplete line with its continuation. */
  function joined(rest: Buffer): Buffer {
    if (carried.length === 0) return rest
    const whole = Buffer.concat([...carried, rest])
    carried = []
    carriedBytes = 0
    return whole
  }

  /** Emits the lines of a block, which ends with a whole line but without its newline. */
  function tell(block: Buffer): void {
    if (isUtf8(block)) tellText(block.toString('utf8'))
    else for (const line of split(block)) tellBytes(line)
  }

  function tellText(text: string): void {
    for (let from = 0; from <= text.length; ) {
      const found = text.indexOf('\n', from)
      const end = found < 0 ? text.length : found
      if (end - from > maxLineBytes) tooLong()
      else tellLine(text, from, end)
      from = end + 1
    }
  }

  function tellLine(text: string, from: number, end: number): void {
    number += 1
    const start = number === 1 && text[from] === BYTE_ORDER_MARK ? from + 1 : from
    sink.line(text.slice(start, end > start && text[end - 1] === '\r' ? end - 1 : end), number)
  }

  function tellBytes(line: Buffer): void {
    if (isUtf8(line)) tellText(line.toString('utf8'))
    else broken('it is not UTF-8')
  }

  return {
    feed(chunk) {
      const last = chunk.lastIndexOf(NEWLINE)
      let from = 0
      if (skipping && last >= 0) {
        skipping = false
        from = chunk.indexOf(NEWLINE) + 1
        tooLong()
      }
      if (last >= from) tell(joined(chunk.subarray(from, last)))
      carry(chunk.subarray(last + 1))
    },
    end() {
      if (skipping) tooLong()
      else if (carriedBytes > 0) tell(joined(Buffer.alloc(0)))
      skipping = false
    },
  }
}

function* split(block: Buffer): Generator<Buffer> {
  for (let from = 0; from <= block.length; ) {
    const found = block.indexOf(NEWLINE, from)
    const end = found < 0 ? block.length : found
    yield block.subarray(from, end)
    from = end + 1
  }
}
