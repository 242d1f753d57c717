import { bytes, span } from '../report/shown.ts'

/** Progress shows the progress of a command. */
export interface Progress {
  /** Reports what was read since the last call. */
  read(more: number): void
  /** Clears the line. */
  done(): void
}

const WIDTH = 24
const EVERY_MS = 200

/**
 * createProgress draws a bar and the time left, five times a second at most. Without a total it
 * shows how much was read, formatted by `shown`; without `status`, when there is no terminal,
 * nothing.
 */
export function createProgress(
  total: number | undefined,
  status: ((text: string) => void) | undefined,
  shown: (value: number) => string = bytes,
  nowMs: () => number = () => performance.now(),
): Progress {
  const startMs = nowMs()
  let read = 0
  let shownMs = startMs

  function text(passedMs: number): string {
    const speed = `${shown((read / passedMs) * 1_000)}/s`
    if (!total) return `${shown(read)} read, ${speed}`
    const share = Math.min(1, read / total)
    const bar = '█'.repeat(Math.round(share * WIDTH)).padEnd(WIDTH, '░')
    const leftMs = (passedMs / share) * (1 - share)
    const left = span(Math.ceil(leftMs / 1_000) * 1_000)
    return `${bar} ${Math.floor(share * 100)} % of ${shown(total)}, ${speed}, about ${left} left`
  }

  return {
    read(more) {
      read += more
      const now = nowMs()
      if (!status || now - shownMs < EVERY_MS) return
      shownMs = now
      status(text(now - startMs))
    },
    done: () => status?.(''),
  }
}
