/**
 * Stops gives each call of `wait` something to stop by: it aborts with the caller's signal, and when
 * the limiter is closed. A signal has one listener however many calls share it: runtimes warn of a
 * leak when it has one for each.
 */
export interface Stops {
  /** Does a call that can be stopped. */
  run<T>(signal: AbortSignal | undefined, call: (stop: AbortController) => Promise<T>): Promise<T>
  /** Stops all calls. */
  close(reason: unknown): void
}

export function createStops(): Stops {
  const bySignal = new Map<AbortSignal | undefined, Set<AbortController>>()

  function aborted(this: AbortSignal): void {
    stopAll(this, this.reason)
  }

  function stopAll(signal: AbortSignal | undefined, reason: unknown): void {
    for (const stop of bySignal.get(signal) ?? []) stop.abort(reason)
  }

  return {
    async run(signal, call) {
      const stop = new AbortController()
      const stops = bySignal.get(signal) ?? new Set()
      if (stops.size === 0) signal?.addEventListener('abort', aborted)
      bySignal.set(signal, stops.add(stop))
      try {
        return await call(stop)
      } finally {
        stops.delete(stop)
        if (stops.size === 0) {
          signal?.removeEventListener('abort', aborted)
          bySignal.delete(signal)
        }
      }
    },
    close(reason) {
      for (const signal of bySignal.keys()) stopAll(signal, reason)
    },
  }
}
