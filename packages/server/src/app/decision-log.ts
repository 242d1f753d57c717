import { basename, dirname } from 'node:path'
import { finished } from 'node:stream/promises'
import type { Logger } from 'pino'
import { createStream, type RotatingFileStream } from 'rotating-file-stream'
import { type Decided, outcomeOf } from '../decided.ts'
import type { DecisionLogSettings } from '../settings.ts'

/** DecisionLog writes every decision down, a line of JSON each. */
export interface DecisionLog {
  note(decided: Decided): void
  /** Writes what is left. */
  close(): Promise<void>
}

/** Lines are written together, after so long or so many characters. */
const FLUSH_MS = 100
const BATCH_CHARACTERS = 65_536

/** What may wait for a slow disk; more is left out, and that is told. */
const MOST_WAITING_BYTES = 16_777_216

/** After a failure the file is opened again, but not at once. */
const RETRY_MS = 5_000

/**
 * openDecisionLog appends to a file. One that has become too large is renamed to `FILE.1`, the one
 * before that to `FILE.2` and so on. Nobody waits for the disk: if it cannot keep up or fails,
 * lines are left out and the service's own log says how many.
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
  let stream: RotatingFileStream | undefined = open()

  function open(): RotatingFileStream {
    const opened = createStream(basename(file), {
      path: dirname(file),
      size: `${maxBytes}B`,
      rotate: files,
      mode: 0o600,
    })
    opened.on('error', (error) => {
      stream = undefined
      failedMs = performance.now()
      logger.error({ file, error: error.message }, 'the decision log cannot be written')
    })
    return opened
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    if (batch === '') return
    if (!stream && performance.now() - failedMs > RETRY_MS) stream = open()
    if (stream && stream.writableLength < MOST_WAITING_BYTES) {
      stream.write(batch)
      if (leftOut > 0) logger.warn({ file, leftOut }, 'the decision log has gaps')
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
      // A failure is told by its own listener.
      await finished(stream).catch(() => {})
    },
  }
}

function lineOf(decided: Decided): string {
  const { key, route, tier, cost, decision } = decided
  const { rule, remaining, retryAfterMs, source } = decision
  const outcome = outcomeOf(decided)
  const time = new Date().toISOString()
  const line = { time, key, route, tier, cost, outcome, rule, remaining, retryAfterMs, source }
  return `${JSON.stringify(line)}\n`
}
