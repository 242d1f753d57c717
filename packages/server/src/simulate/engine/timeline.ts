/** Timeline counts by time, in bins that get wider as the span grows. */
export interface Timeline {
  /** Adds 1 to a row at a time. */
  count(row: number, timeUs: number): void
  /** The width of a bin in microseconds. */
  widthUs(): number
  /** When the first bin begins, in microseconds since 1970; a multiple of the width. */
  startUs(): number
  /** The counts of a row, all of the same length. */
  row(row: number): number[]
}

const SECOND = 1_000_000

/** Widths that people can read; each is a multiple of the one before, and later each doubles. */
const WIDTHS = [
  ...[0.01, 0.1, 0.5, 1, 2, 10, 30, 60, 300, 600, 1_800, 3_600],
  ...[7_200, 21_600, 43_200, 86_400, 604_800],
].map((seconds) => seconds * SECOND)

/** createTimeline keeps `rows` rows of at most `maxBins` bins. Times need no order. */
export function createTimeline(rows: number, maxBins = 60): Timeline {
  const bins: number[][] = Array.from({ length: rows }, () => [])
  let step = 0
  let widthUs = WIDTHS[0]
  let first = -1
  let last = -1

  function widen(): void {
    step += 1
    const wider = WIDTHS[step] ?? widthUs * 2
    const ratio = wider / widthUs
    const shift = first
    widthUs = wider
    first = Math.floor(first / ratio)
    last = Math.floor(last / ratio)
    bins.forEach((counts, row) => {
      const merged: number[] = Array(last - first + 1).fill(0)
      counts.forEach((count, i) => {
        merged[Math.floor((shift + i) / ratio) - first] += count
      })
      bins[row] = merged
    })
  }

  /** Makes room for a bin, and returns its index. */
  function placeOf(timeUs: number): number {
    for (;;) {
      const bin = Math.floor(timeUs / widthUs)
      if (bin >= first && bin <= last) return bin - first
      if (first === -1) first = last = bin
      const [from, to] = [Math.min(first, bin), Math.max(last, bin)]
      if (to - from >= maxBins) {
        widen()
        continue
      }
      for (const counts of bins) {
        const before = bin < first ? first - bin : 0
        if (before > 0) counts.unshift(...Array(before).fill(0))
        while (counts.length < to - from + 1) counts.push(0)
      }
      first = from
      last = to
      return bin - first
    }
  }

  return {
    count(row, timeUs) {
      // First, because making room may replace the rows.
      const place = placeOf(timeUs)
      bins[row][place] += 1
    },
    widthUs: () => widthUs,
    startUs: () => Math.max(first, 0) * widthUs,
    row: (row) => bins[row],
  }
}
