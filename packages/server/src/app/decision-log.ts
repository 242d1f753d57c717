import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { finished } from 'node:stream/promises'
import type { Logger } from 'pino'
import { createStream, type RotatingFileStream } from 'rotating-file-stream'
import { SluiceError } from 'sluice'
import { type Decided, outcomeOf } from '../decided.ts'
import type { DecisionLogSettings } from '../settings.ts'

/** DecisionLog writes every decision as a line of JSON. */
export interface DecisionLog {
  note(decided: Decided): void
  /** Writes the lines that are still buffered. */
  close(): Promise<void>
}

/** Lines are written in batches: after this time, or this many characters. */
const FLUSH_MS = 100
const BATCH_CHARACTERS = 65_536

/** The most that is buffered for a slow disk; further lines are dropped, and the log says so. */
const MOST_WAITING_BYTES = 16_777_216

/** How often the service checks whether the file was removed. */
const LOOK_MS = 1_000

/** How long after a failure the file is opened again. */
const RETRY_MS = 5_000

/**
 * openDecisionLog appends to a file, and throws if it cannot be opened. A file that has become too
 * large is rotated: it is renamed to `FILE.1`, the one before that to `FILE.2` and so on. Decisions
 * do not wait for the disk: if it fails or cannot keep up, lines are dropped, and the service's own
 * log says how many.
 */
export function openDecisionLog(
  { file, maxBytes, files }: DecisionLogSettings,
  logger: Logger,
): DecisionLog {
  let batch = ''
  let lines = 0
  let leftOut = 0
  let timer: NodeJS.Timeout | undefined
  let failedMs = Number.NEGATIVE_INFINITY
  let lookedMs = 0
  let stream = openFirst()

  function openFirst(): RotatingFileStream | undefined {
    try {
      return open()
    } catch (cause) {
      throw new SluiceError(
        'SLUICE_OPTION',
        `cannot write the decision log: ${(cause as Error).message}. Choose a file in an existing folder.`,
        { cause },
      )
    }
  }

  function open(): RotatingFileStream {
    makeSure(file)
    const opened = createStream(basename(file), {
      path: dirname(file),
      size: `${maxBytes}B`,
      rotate: files,
      mode: 0o600,
    })
    opened.once('error', failed)
    opened.on('error', () => {})
    return opened
  }

  /** The stream, opened again after a failure or when the file was removed. */
  function streamNow(): RotatingFileStream | undefined {
    const nowMs = performance.now()
    if (stream && nowMs - lookedMs > LOOK_MS) {
      lookedMs = nowMs
      if (!existsSync(file) && stream.writableLength === 0) {
        stream.end()
        stream = undefined
        failedMs = Number.NEGATIVE_INFINITY
      }
    }
    if (stream || nowMs - failedMs <= RETRY_MS) return stream
    try {
      stream = open()
    } catch (error) {
      failed(error as Error)
    }
    return stream
  }

  function failed(error: Error): void {
    stream = undefined
    failedMs = performance.now()
    logger.error({ file, error: error.message }, 'cannot write the decision log')
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    if (batch === '') return
    const stream = streamNow()
    if (stream && stream.writableLength < MOST_WAITING_BYTES) {
      const written = lines
      stream.write(batch, (error) => {
        if (error) leftOut += written
      })
      if (leftOut > 0) logger.warn({ file, leftOut }, 'lines missing in the decision log')
      leftOut = 0
    } else {
      leftOut += lines
    }
    batch = ''
    lines = 0
  }

  return {
    note(decided) {
      batch += lineOf(decided)
      lines += 1
      if (batch.length >= BATCH_CHARACTERS) flush()
      else timer ??= setTimeout(flush, FLUSH_MS).unref()
    },
    async close() {
      flush()
      if (!stream) return
      stream.end()
      // The error listener reports failures.
      await finished(stream).catch(() => {})
    },
  }
}

/**
 * Opens the file once, and makes its folder if the parent exists: the stream would retry for ever,
 * and a recursive `mkdir` would hang in some places, such as /proc.
 */
function makeSure(file: string): void {
  if (!existsSync(dirname(file))) mkdirSync(dirname(file))
  closeSync(openSync(file, 'a', 0o600))
}

function lineOf(decided: Decided): string {
  const { key, route, tier, cost, decision } = decided
  const { rule, remaining, retryAfterMs, source } = decision
  const outcome = outcomeOf(decided)
  const time = new Date().toISOString()
  const line = { time, key, route, tier, cost, outcome, rule, remaining, retryAfterMs, source }
  return `${JSON.stringify(decided.isByApi ? { ...line, api: true } : line)}\n`
}
