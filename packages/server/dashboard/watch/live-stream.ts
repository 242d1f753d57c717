import type {
  LiveChange,
  LiveKeyNews,
  LiveNews,
  LiveStart,
} from '../../src/dashboard/live-event.ts'
import { ApiProblem, ask } from './api.ts'
import { createSseReader } from './sse.ts'

/** Listener is called with events, and with changes of the connection. */
export interface Listener {
  start(start: LiveStart): void
  about(change: LiveChange): void
  second(news: LiveNews): void
  key(news: LiveKeyNews): void
  /** The stream ends: a token is missing, or the API refuses access. */
  refused(problem: ApiProblem): void
  /** The connection is lost and is being reopened. */
  lost(): void
}

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 10_000
/** The server sends an event every second: after this silence the connection counts as lost. */
const SILENCE_MS = 8_000

/**
 * openLive follows `/v1/live`, and returns a function that stops it. A lost stream is reopened with
 * exponential backoff. (EventSource does the same, but cannot send a token.)
 */
export function openLive(key: string, listener: Listener): () => void {
  const stop = new AbortController()
  let pauseMs = FIRST_PAUSE_MS

  async function follow(): Promise<void> {
    const silence = new AbortController()
    let timer = setTimeout(() => silence.abort(), SILENCE_MS)
    try {
      const signal = AbortSignal.any([stop.signal, silence.signal])
      const query = key === '' ? '' : `?key=${encodeURIComponent(key)}`
      const { body } = await ask(`/v1/live${query}`, { signal })
      if (!body) return
      const read = createSseReader()
      const reader = body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { value, done } = await reader.read()
        if (done) return
        clearTimeout(timer)
        timer = setTimeout(() => silence.abort(), SILENCE_MS)
        for (const { name, data } of read(value)) {
          if (stop.signal.aborted) return
          if (name === 'start') listener.start(JSON.parse(data))
          if (name === 'about') listener.about(JSON.parse(data))
          if (name === 'second') listener.second(JSON.parse(data))
          if (name === 'key') listener.key(JSON.parse(data))
          pauseMs = FIRST_PAUSE_MS
        }
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        await follow()
      } catch (error) {
        const isFinal = error instanceof ApiProblem && error.status < 500
        if (isFinal && !stop.signal.aborted) return listener.refused(error)
      }
      if (stop.signal.aborted) return
      listener.lost()
      // Jitter, so that not all pages reconnect at once after a restart.
      await new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random() / 2)))
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    }
  }
  void run()
  return () => stop.abort()
}
