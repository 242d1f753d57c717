import { createNumbers } from './numbers.ts'

/** The windows in which use is counted. */
const WINDOWS = [
  { per: '1s', perUs: 1_000_000 },
  { per: '1m', perUs: 60_000_000 },
  { per: '1h', perUs: 3_600_000_000 },
] as const

/** WindowUse is how much clients use within windows of one length, aligned to the clock. */
export interface WindowUse {
  readonly per: string
  readonly perUs: number
  /** The largest use of each client in one window, ascending. */
  readonly largest: Float64Array
  /** Units used in one window by one client → how often that occurred. */
  readonly uses: ReadonlyMap<number, number>
}

/** Usage counts what each client uses, in units. */
export interface Usage {
  /** Times must not decrease. */
  count(client: number, cost: number, timeUs: number): void
  /** Sums up the use of this many clients. */
  sum(clients: number): WindowUse[]
}

/** createUsage takes 60 bytes per client. */
export function createUsage(): Usage {
  const tables = WINDOWS.map((window) => ({
    ...window,
    /** The number of the window in which a client was last seen, from 1 on; 0 for none. */
    seen: createNumbers(),
    used: createNumbers(Float64Array),
    largest: createNumbers(Float64Array),
    uses: new Map<number, number>(),
  }))
  /** The time of the first request, so that window numbers are small. */
  let originUs = -1

  function close(uses: Map<number, number>, used: number): void {
    if (used > 0) uses.set(used, (uses.get(used) ?? 0) + 1)
  }

  return {
    count(client, cost, timeUs) {
      if (originUs < 0) originUs = timeUs
      for (const { perUs, seen, used, largest, uses } of tables) {
        const window = Math.floor(timeUs / perUs) - Math.floor(originUs / perUs) + 1
        let now = cost
        if (seen.get(client) === window) {
          now += used.get(client)
        } else {
          close(uses, used.get(client))
          seen.set(client, window)
        }
        used.set(client, now)
        if (now > largest.get(client)) largest.set(client, now)
      }
    },
    sum: (clients) =>
      tables.map(({ per, perUs, used, largest, uses }) => {
        const all = new Map(uses)
        const sorted = new Float64Array(clients)
        for (let i = 0; i < clients; i += 1) {
          close(all, used.get(i))
          sorted[i] = largest.get(i)
        }
        return { per, perUs, largest: sorted.sort(), uses: all }
      }),
  }
}

/**
 * percentile is the least value that `share` of a sorted list does not exceed; 0 for an empty list.
 */
export function percentile(sorted: Float64Array, share: number): number {
  if (sorted.length === 0) return 0
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
}

/** clientsOver counts the clients that use more than `limit` in some window. */
export function clientsOver({ largest }: WindowUse, limit: number): number {
  let low = 0
  let high = largest.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (largest[middle] > limit) high = middle
    else low = middle + 1
  }
  return largest.length - low
}

/** unitsOver sums the use above `limit`, window by window. */
export function unitsOver({ uses }: WindowUse, limit: number): number {
  let over = 0
  for (const [used, times] of uses) if (used > limit) over += (used - limit) * times
  return over
}
