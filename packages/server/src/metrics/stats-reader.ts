import { Counter, Gauge, type Registry } from 'prom-client'

/** Stats are the keys in a store now, and its evictions so far. */
export interface Stats {
  readonly keys: number
  readonly evictions: number
}

/** StatsReader keeps the two gauges of a store up to date. */
export interface StatsReader {
  observe(read: () => Stats | Promise<Stats>): void
  /** Reads once; call it before each scrape. It never fails, and takes no longer than a second. */
  refresh(): Promise<void>
}

/** Scrapers time out after ten seconds by default, so the other metrics must not wait longer. */
const LONGEST_READ_MS = 1_000

/**
 * createStatsReader registers `sluice_keys` and `sluice_evictions` once there is something to read.
 * They are NaN, which triggers no alert, whenever reading fails; `sluice_stats_errors_total` counts
 * the failures.
 */
export function createStatsReader(registry: Registry): StatsReader {
  let reader: (() => Stats | Promise<Stats>) | undefined
  let shown: ReturnType<typeof register> | undefined

  return {
    observe(read) {
      reader = read
      shown ??= register(registry)
    },
    async refresh() {
      if (!reader || !shown) return
      try {
        shown.show(await inTime(reader()))
      } catch {
        shown.show({ keys: Number.NaN, evictions: Number.NaN })
        shown.errors.inc()
      }
    },
  }
}

function register(registry: Registry) {
  const registers = [registry]
  const keys = new Gauge({ name: 'sluice_keys', help: 'Keys in the store.', registers })
  const evictions = new Gauge({
    name: 'sluice_evictions',
    help: 'Keys evicted because the store was full.',
    registers,
  })
  const errors = new Counter({
    name: 'sluice_stats_errors_total',
    help: 'Scrapes in which the statistics of the store could not be read.',
    registers,
  })
  return {
    errors,
    show(stats: Stats) {
      keys.set(stats.keys)
      evictions.set(stats.evictions)
    },
  }
}

async function inTime<T>(work: T | Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the store took too long')), LONGEST_READ_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
