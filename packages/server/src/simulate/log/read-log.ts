import { type LogOptions, type OpenFormat, openFormat } from './log-format.ts'
import type { LogRequest } from './request.ts'
import { createLineSplitter } from './split-lines.ts'

/** LineProblem is a line that could not be read. */
export interface LineProblem {
  readonly file: string
  readonly line: number
  readonly reason: string
}

/** LogCounts are the lines of a log, summed over several. */
export interface LogCounts {
  lines: number
  unreadable: number
  /** The first few problems. */
  readonly problems: LineProblem[]
  /** `access.log: combined`, for the report. */
  readonly formats: string[]
  /** Whether no time has a fraction of a second, as in access logs. */
  wholeSeconds: boolean
}

/** The number of lines from which the format is detected. */
const LOOKED_AT = 20
const TOLD = 5

/** newLogCounts are counts of 0 for `readLog`. */
export function newLogCounts(): LogCounts {
  return { lines: 0, unreadable: 0, problems: [], formats: [], wholeSeconds: true }
}

/**
 * readLog reads a log chunk by chunk and passes each request on. It skips empty lines; it counts
 * lines that cannot be read, and keeps the first few with the reason.
 */
export async function readLog(
  file: string,
  chunks: AsyncIterable<Buffer>,
  options: LogOptions,
  counts: LogCounts,
  take: (request: LogRequest) => void,
): Promise<void> {
  /** The lines before the format is known; undecodable ones have a reason. */
  let first: { number: number; text: string; reason?: string }[] = []
  let open: OpenFormat | undefined

  function broken(line: number, reason: string): void {
    counts.lines += 1
    counts.unreadable += 1
    if (counts.problems.length < TOLD) counts.problems.push({ file, line, reason })
  }

  function read({ read }: OpenFormat, text: string, number: number): void {
    const request = read(text)
    if (typeof request === 'string') {
      broken(number, request)
    } else {
      counts.lines += 1
      if (request.timeUs % 1_000_000 !== 0) counts.wholeSeconds = false
      take(request)
    }
  }

  function begin(): void {
    const texts = first.flatMap(({ text }) => (text === '' ? [] : [text]))
    if (texts.length === 0) {
      for (const { number, reason = '' } of first) broken(number, reason)
    } else {
      open = openFormat(texts, options)
      let isHeader = open.hasHeader
      for (const { text, number, reason } of first) {
        if (reason !== undefined) broken(number, reason)
        else if (isHeader) isHeader = false
        else read(open, text, number)
      }
    }
    first = []
  }

  const splitter = createLineSplitter({
    line(text, number) {
      if (text === '') return
      if (open) read(open, text, number)
      else if (first.push({ text, number }) >= LOOKED_AT) begin()
    },
    broken(number, reason) {
      if (open) broken(number, reason)
      else if (first.push({ text: '', number, reason }) >= LOOKED_AT) begin()
    },
  })
  for await (const chunk of chunks) splitter.feed(chunk)
  splitter.end()
  if (first.length > 0) begin()
  if (open) counts.formats.push(`${file}: ${formatText(open)}`)
}

function formatText({ format, names }: OpenFormat): string {
  const used = Object.entries(names()).flatMap(([field, name]) =>
    name === undefined ? [] : [`${field} from ${JSON.stringify(name)}`],
  )
  return used.length === 0 ? format : `${format}, ${used.join(', ')}`
}
