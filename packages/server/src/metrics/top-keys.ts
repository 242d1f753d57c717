import { type Clock, SluiceError, systemClock } from 'sluice'

/** About says where a key was refused, and by which rule. */
export interface About {
  readonly route: string
  readonly tier: string
  readonly rule: string
}

/** TopKey is a key that is refused often, with the route, tier and rule of its last refusal. */
export interface TopKey extends About {
  readonly key: string
  /** Never below the true count. It halves on every full hour, so it may carry a fraction. */
  readonly count: number
  /** How many of them routes in shadow mode let through; too low by `error` at most. */
  readonly shadowed: number
  /** The largest amount by which `count` may be too high. */
  readonly error: number
  /** When it was last refused, in milliseconds since 1970. */
  readonly lastMs: number
}

/** TopKeys counts refusals by key in bounded memory. */
export interface TopKeys {
  /**
   * Adds `units` to a key; ignored unless above 0. Without `about` the last one stays.
   * `isShadowed` units were let through.
   */
  count(key: string, units?: number, about?: About, isShadowed?: boolean): void
  /**
   * The `n` most refused keys, then those refused most in shadow mode. Counts below 0.5 are left
   * out.
   */
  top(n: number): TopKey[]
  /** Counters in use, at most `capacity`. */
  size(): number
  clear(): void
}

/** TopKeysOptions are all optional. */
export interface TopKeysOptions {
  /** The largest number of counters. Default 1,000. Each takes up to 2 KB with the longest key. */
  readonly capacity?: number
  readonly clock?: Clock
}

interface Counter extends TopKey {
  key: string
  count: number
  shadowed: number
  error: number
  route: string
  tier: string
  rule: string
  lastMs: number
  /** Its place in the heap. */
  at: number
}

const HOUR_US = 3_600_000_000
const MOST_COUNTERS = 1_000_000
const LEAST_SHOWN = 0.5

/** The longest key of a limiter; of a longer key the beginning is counted. */
const LONGEST_KEY = 1_024

/**
 * createTopKeys finds the keys that are refused most, however many there are (Space-Saving). With
 * N units counted in all, true count ≤ `count` ≤ true count + `error`, `error` is at most
 * N / capacity, and every key whose true count is above N / capacity has a counter.
 *
 * All counts, and the true counts of the guarantee with them, halve on every full hour. Halving is
 * linear, so it keeps the guarantee and the order; two rotating generations would not.
 * An update takes O(log capacity) steps whatever its units: counters are a min-heap.
 */
export function createTopKeys(options: TopKeysOptions = {}): TopKeys {
  const { capacity = 1_000, clock = systemClock } = options
  if (!Number.isInteger(capacity) || capacity < 1 || capacity > MOST_COUNTERS) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `createTopKeys: capacity must be a whole number from 1 to 1,000,000, got ${capacity}.`,
    )
  }
  const byKey = new Map<string, Counter>()
  const heap: Counter[] = []
  let hour = hourOf(clock.nowUs())

  function forget(nowUs: number): void {
    const passed = hourOf(nowUs) - hour
    if (passed <= 0) return
    hour += passed
    const share = 2 ** -passed
    for (const counter of heap) {
      counter.count *= share
      counter.shadowed *= share
      counter.error *= share
    }
  }

  function enter(key: string): Counter {
    let counter: Counter
    if (heap.length < capacity) {
      const none = { count: 0, shadowed: 0, error: 0, route: '', tier: '', rule: '', lastMs: 0 }
      counter = { key: ownCopy(key), ...none, at: heap.length }
      heap.push(counter)
      rise(heap, counter)
    } else {
      // The new key may have been counted before, at most as often as the least of all counters.
      counter = heap[0]
      byKey.delete(counter.key)
      counter.key = ownCopy(key)
      counter.error = counter.count
      counter.shadowed = 0
      counter.route = counter.tier = counter.rule = ''
    }
    byKey.set(counter.key, counter)
    return counter
  }

  return {
    count(key, units = 1, about, isShadowed = false) {
      if (!(units > 0)) return
      const nowUs = clock.nowUs()
      forget(nowUs)
      const name = key.length > LONGEST_KEY ? key.slice(0, LONGEST_KEY) : key
      const counter = byKey.get(name) ?? enter(name)
      counter.count += units
      if (isShadowed) counter.shadowed += units
      counter.lastMs = Math.floor(nowUs / 1_000)
      if (about) {
        counter.route = about.route
        counter.tier = about.tier
        counter.rule = about.rule
      }
      sink(heap, counter)
    },
    top(n) {
      forget(clock.nowUs())
      return heap
        .filter((counter) => counter.count >= LEAST_SHOWN)
        .sort((a, b) => moreRefused(a, b) || b.lastMs - a.lastMs)
        .slice(0, n)
        .map(({ at, ...shown }) => shown)
    },
    size: () => heap.length,
    clear() {
      byKey.clear()
      heap.length = 0
    },
  }
}

function moreRefused(a: TopKey, b: TopKey): number {
  return b.count - b.shadowed - (a.count - a.shadowed) || b.count - a.count
}

function hourOf(us: number): number {
  return Math.floor(us / HOUR_US)
}

/** ownCopy copies a key, since a slice would keep the whole header alive that it was cut from. */
export function ownCopy(key: string): string {
  return Buffer.from(key, 'utf16le').toString('utf16le')
}

function rise(heap: Counter[], counter: Counter): void {
  let at = counter.at
  while (at > 0) {
    const parent = heap[(at - 1) >> 1]
    if (parent.count <= counter.count) break
    const above = parent.at
    place(heap, parent, at)
    at = above
  }
  place(heap, counter, at)
}

function sink(heap: Counter[], counter: Counter): void {
  let at = counter.at
  for (;;) {
    let least = 2 * at + 1
    if (least + 1 < heap.length && heap[least + 1].count < heap[least].count) least++
    if (least >= heap.length || heap[least].count >= counter.count) break
    place(heap, heap[least], at)
    at = least
  }
  place(heap, counter, at)
}

function place(heap: Counter[], counter: Counter, at: number): void {
  heap[at] = counter
  counter.at = at
}

/**
 * joinTop adds up the counts of several processes. A key that one of them does not list may have
 * been counted there: its sum is then too low, by that process's least counter at most.
 */
export function joinTop(lists: readonly (readonly TopKey[])[], n: number): TopKey[] {
  const joined = new Map<string, TopKey>()
  for (const each of lists.flat()) {
    const other = joined.get(each.key)
    if (!other) {
      joined.set(each.key, each)
      continue
    }
    const later = each.lastMs > other.lastMs ? each : other
    joined.set(each.key, {
      ...later,
      count: each.count + other.count,
      shadowed: each.shadowed + other.shadowed,
      error: each.error + other.error,
    })
  }
  return [...joined.values()].sort(moreRefused).slice(0, n)
}
