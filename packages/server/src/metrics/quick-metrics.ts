import type { Metric, Registry } from 'prom-client'

/** OTHER is the label value of everything beyond a cap. */
export const OTHER = 'other'

// prom-client validates every label of every event, which takes longer than a decision. These
// metrics count in plain maps, and build the series on a scrape.

interface Value {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

/** About is the name and help text of a metric. */
export interface About {
  readonly name: string
  readonly help: string
}

/** CounterAbout: the values of the first `open` labels are unbounded, and are capped. */
export interface CounterAbout extends About {
  readonly labels: readonly string[]
  readonly open: number
}

type Branch = Map<string, Branch | Leaf>
interface Leaf {
  readonly values: readonly string[]
  count: number
}

/**
 * The largest number of series of a metric, in case a client can make up label values; the rest is
 * counted as `other`.
 */
const MOST_SERIES = 10_000

/**
 * addCounter registers a counter, and returns a function that counts by the values of its labels.
 */
export function addCounter(
  registry: Registry,
  about: CounterAbout,
): (values: readonly string[]) => void {
  const { labels, open } = about
  const root: Branch = new Map()
  const leaves: Leaf[] = []
  const last = labels.length - 1

  function enter(values: readonly string[]): Leaf {
    const isKnown = values.every((value, i) => i >= open || value === OTHER)
    if (leaves.length >= MOST_SERIES && !isKnown) {
      return find(values.map((value, i) => (i < open ? OTHER : value)))
    }
    let branch = root
    for (const value of values.slice(0, last)) {
      const next = (branch.get(value) as Branch | undefined) ?? new Map()
      branch.set(value, next)
      branch = next
    }
    const leaf = { values: [...values], count: 0 }
    branch.set(values[last], leaf)
    leaves.push(leaf)
    return leaf
  }

  function find(values: readonly string[]): Leaf {
    let branch: Branch | undefined = root
    for (let i = 0; i < last && branch; i += 1) branch = branch.get(values[i]) as Branch | undefined
    return (branch?.get(values[last]) as Leaf | undefined) ?? enter(values)
  }

  register(registry, about, 'counter', () =>
    leaves.map(({ values, count }) => ({
      labels: Object.fromEntries(labels.map((label, i) => [label, values[i]])),
      value: count,
    })),
  )
  return (values) => {
    find(values).count += 1
  }
}

/** HistogramAbout: `buckets` are upper bounds in seconds. */
export interface HistogramAbout extends About {
  readonly label: string
  readonly buckets: readonly number[]
}

/** addHistogram registers a histogram of seconds by the value of one label. */
export function addHistogram(
  registry: Registry,
  about: HistogramAbout,
): (value: string, seconds: number) => void {
  const { name, label, buckets } = about
  const all = new Map<string, { counts: number[]; sum: number; count: number }>()
  register(registry, about, 'histogram', () =>
    [...all].flatMap(([value, { counts, sum, count }]) => {
      const labels = { [label]: value }
      let below = 0
      const bounds = counts.map((each, i): Value => {
        below += each
        return { metricName: `${name}_bucket`, labels: { le: buckets[i], ...labels }, value: below }
      })
      return [
        ...bounds,
        { metricName: `${name}_bucket`, labels: { le: '+Inf', ...labels }, value: count },
        { metricName: `${name}_sum`, labels, value: sum },
        { metricName: `${name}_count`, labels, value: count },
      ]
    }),
  )
  function enter(value: string) {
    const name = all.size >= MOST_SERIES ? OTHER : value
    const of = all.get(name) ?? { counts: buckets.map(() => 0), sum: 0, count: 0 }
    all.set(name, of)
    return of
  }

  return (value, seconds) => {
    const of = all.get(value) ?? enter(value)
    let at = 0
    while (at < buckets.length && seconds > buckets[at]) at += 1
    if (at < buckets.length) of.counts[at] += 1
    of.sum += seconds
    of.count += 1
  }
}

function register(
  registry: Registry,
  { name, help }: About,
  type: string,
  values: () => Value[],
): void {
  const get = async () => ({ name, help, type, aggregator: 'sum', values: values() })
  // prom-client calls nothing else of a metric, but types it as one of its own classes.
  registry.registerMetric({ name, get } as unknown as Metric)
}
