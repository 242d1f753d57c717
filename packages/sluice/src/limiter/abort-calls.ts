/**
 * AbortCalls calls back when a signal aborts, with one listener per signal however many wait on it:
 * runtimes warn of a leak when a signal that many calls share has a listener for each.
 */
export interface AbortCalls {
  /** Calls `abort` with the signal's reason once it aborts; the function returned takes that back. */
  on(signal: AbortSignal | undefined, abort: (reason: unknown) => void): () => void
}

export function createAbortCalls(): AbortCalls {
  const calls = new Map<AbortSignal, Set<(reason: unknown) => void>>()

  function aborted(this: AbortSignal): void {
    const waiting = calls.get(this) ?? []
    calls.delete(this)
    for (const abort of [...waiting]) abort(this.reason)
  }

  return {
    on(signal, abort) {
      if (!signal) return () => {}
      const waiting = calls.get(signal) ?? new Set()
      if (waiting.size === 0) signal.addEventListener('abort', aborted, { once: true })
      calls.set(signal, waiting.add(abort))
      return () => {
        waiting.delete(abort)
        if (waiting.size > 0) return
        signal.removeEventListener('abort', aborted)
        calls.delete(signal)
      }
    },
  }
}
