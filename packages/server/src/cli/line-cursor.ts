import { SluiceError } from 'sluice'

const NEWLINE = 10
const RETURN = 13
const SPACE = 32
const TAB = 9
const NOTHING: Buffer = Buffer.alloc(0)

// Bounds the memory that one line may take.
const MAX_LINE_BYTES = 64 * 1024 * 1024

/**
 * LineCursor walks over the lines of a chunked input and over the words of each line. It compares
 * bytes, and decodes a word only in `word()`.
 */
export interface LineCursor {
  /** The current line, counted from 1; 0 before the first. */
  lineNumber(): number
  /** Sets the next chunk. Call it only after `nextLine` returned false. */
  feed(chunk: Buffer): void
  /** Ends the input: a last line without a newline then counts as a line. */
  finish(): void
  /** Moves to the next complete line; false when that needs another chunk. */
  nextLine(): boolean
  /** Moves to the next word of the line; false at its end. Spaces and tabs separate words. */
  nextWord(): boolean
  /** Whether the current word consists of exactly these bytes. */
  wordIs(bytes: Uint8Array): boolean
  /** The current word, one character per byte (latin1), as a string that retains no chunk. */
  word(): string
}

/**
 * createLineCursor makes a cursor before the first line. Lines end in `\n` or `\r\n`. `feed` and
 * `nextLine` throw `SLUICE_REPLAY` for a line longer than `maxLineBytes`, by default 64 MiB.
 */
export function createLineCursor(maxLineBytes = MAX_LINE_BYTES): LineCursor {
  let bytes = NOTHING
  let from = 0 // where the next line starts in bytes
  let number = 0
  let end = 0
  let wordStart = 0
  let wordEnd = 0
  let carried: Buffer[] = [] // the incomplete line, from earlier chunks
  let carriedBytes = 0

  function carry(piece: Buffer): void {
    carried.push(piece)
    carriedBytes += piece.length
    if (carriedBytes <= maxLineBytes) return
    throw new SluiceError(
      'SLUICE_REPLAY',
      `line ${number + 1}: a line may be at most ${maxLineBytes} bytes long. Is this a text file?`,
    )
  }

  function joined(rest: Buffer): Buffer {
    const whole = Buffer.concat([...carried, rest])
    carried = []
    carriedBytes = 0
    return whole
  }

  return {
    lineNumber: () => number,
    feed(chunk) {
      from = 0
      if (carried.length === 0) {
        bytes = chunk
      } else if (chunk.includes(NEWLINE)) {
        bytes = joined(chunk)
      } else {
        bytes = NOTHING
        carry(chunk)
      }
    },
    finish() {
      from = 0
      bytes = carried.length === 0 ? NOTHING : joined(Buffer.of(NEWLINE))
    },
    nextLine() {
      const start = from
      for (let i = start; i < bytes.length; i++) {
        if (bytes[i] !== NEWLINE) continue
        from = i + 1
        number += 1
        wordEnd = start
        end = i > start && bytes[i - 1] === RETURN ? i - 1 : i
        return true
      }
      if (start < bytes.length) carry(bytes.subarray(start))
      from = bytes.length
      return false
    },
    nextWord() {
      let i = wordEnd
      while (i < end && (bytes[i] === SPACE || bytes[i] === TAB)) i++
      wordStart = i
      while (i < end && bytes[i] !== SPACE && bytes[i] !== TAB) i++
      wordEnd = i
      return wordStart < wordEnd
    },
    wordIs(expected) {
      if (wordEnd - wordStart !== expected.length) return false
      for (let i = 0; i < expected.length; i++) {
        if (bytes[wordStart + i] !== expected[i]) return false
      }
      return true
    },
    word: () => bytes.toString('latin1', wordStart, wordEnd),
  }
}
