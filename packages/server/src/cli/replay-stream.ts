import { createReplay, type Replay, SluiceError } from 'sluice'
import { createLineCursor, type LineCursor } from './line-cursor.ts'

const REQUEST = Buffer.from('request')
const INTEGER = /^[+-]?\d+$/
const HEADER = ['capacity', 'window', 'count'] as const
const HEADER_HELP = 'Begin with three whole numbers: capacity, window and the count of lines.'
const REQUEST_HELP = 'Write it like: request alice 10'

/**
 * replayStream reads a replay from `chunks` and writes a line `allow` or `deny` per request, at
 * least once per chunk, so that an interactive peer gets its answers. It stops reading after
 * the counted lines. Throws `SLUICE_REPLAY` with the line number for malformed input, after the
 * answers to the lines before it were written. Memory grows with the clients, not with the lines.
 */
export async function replayStream(
  chunks: AsyncIterable<Buffer>,
  write: (text: string) => Promise<void>,
): Promise<void> {
  const lines = createLineCursor()
  const answers = createAnswers(lines)

  async function advance(): Promise<boolean> {
    try {
      return answers.advance()
    } finally {
      const text = answers.drain()
      if (text !== '') await write(text)
    }
  }

  for await (const chunk of chunks) {
    lines.feed(chunk)
    if (await advance()) return
  }
  lines.finish()
  if (!(await advance())) throw answers.endedEarly()
}

/** Answers turns the lines of a cursor into the text to print. */
interface Answers {
  /** Processes the complete lines so far; true when the replay is complete. */
  advance(): boolean
  /** Returns the output since the last call. */
  drain(): string
  /** Returns the error to throw when the input ends before the replay is complete. */
  endedEarly(): SluiceError
}

function createAnswers(lines: LineCursor): Answers {
  const header: bigint[] = []
  let state: Replay | undefined
  // A count beyond 2^53 loses digits here, and no input is that long.
  let expected = 0
  let taken = 0
  let text = ''

  function takeHeaderLine(): void {
    while (lines.nextWord()) {
      if (header.length === HEADER.length) {
        const found = quoted(lines.word())
        throw malformed(lines, `nothing may follow the count on its line, got ${found}.`)
      }
      header.push(headerNumber(lines, HEADER[header.length]))
    }
    if (header.length < HEADER.length) return
    state = createReplay(header[0], header[1])
    expected = Number(header[2])
  }

  return {
    advance() {
      while (state === undefined && lines.nextLine()) takeHeaderLine()
      if (state === undefined) return false
      while (taken < expected && lines.nextLine()) {
        if (lines.nextWord() && lines.wordIs(REQUEST)) {
          text += takeRequest(lines, state) === 'allow' ? 'allow\n' : 'deny\n'
        }
        taken += 1
      }
      return taken === expected
    },
    drain() {
      const drained = text
      text = ''
      return drained
    },
    endedEarly() {
      if (header.length < HEADER.length) {
        return malformed(
          lines,
          `the input ends before the ${HEADER[header.length]}. ${HEADER_HELP}`,
        )
      }
      const promised = quoted(String(header[2])).slice(1, -1)
      return malformed(
        lines,
        `the input ends after ${taken} of ${promised} lines. Add the others or lower the count.`,
      )
    },
  }
}

function headerNumber(lines: LineCursor, name: string): bigint {
  // Editors may put a byte order mark in front of the first number.
  const word = lines.word().replace(/^\xef\xbb\xbf/, '')
  const number = INTEGER.test(word) ? BigInt(word) : -1n
  if (number >= 0n) return number
  throw malformed(
    lines,
    `the ${name} must be a whole number from 0 up, got ${quoted(word)}. ${HEADER_HELP}`,
  )
}

function takeRequest(lines: LineCursor, state: Replay): string {
  const client = lines.nextWord() ? lines.word() : ''
  const timestamp = lines.nextWord() ? lines.word() : ''
  if (timestamp === '' || lines.nextWord()) throw wrongArguments(lines, client, timestamp)
  try {
    return state.request(client, timestamp)
  } catch (cause) {
    if (!(cause instanceof SluiceError)) throw cause
    const problem = `the timestamp must be an integer, got ${quoted(timestamp)}.`
    throw malformed(lines, `${problem} ${REQUEST_HELP}`, cause)
  }
}

function wrongArguments(lines: LineCursor, client: string, timestamp: string): SluiceError {
  const got = timestamp !== '' ? 'more' : client !== '' ? 'one' : 'none'
  const rule = 'a request takes two arguments, a client and a timestamp'
  return malformed(lines, `${rule}, got ${got}. ${REQUEST_HELP}`)
}

function malformed(lines: LineCursor, problem: string, cause?: unknown): SluiceError {
  const line = Math.max(1, lines.lineNumber())
  return new SluiceError('SLUICE_REPLAY', `line ${line}: ${problem}`, { cause })
}

/** Shows a latin1 word as the UTF-8 it most likely was: short, without control characters. */
function quoted(word: string): string {
  const start = Buffer.from(word.slice(0, 60), 'latin1').toString('utf8')
  const safe = start.replace(/\p{C}/gu, '\ufffd')
  return `"${safe}${word.length > 60 ? '…' : ''}"`
}
