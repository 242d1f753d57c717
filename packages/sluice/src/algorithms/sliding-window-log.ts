import { completeAlgorithm, RECENT } from '../core/algorithm.ts'
import { MOST_COUNT, mulDiv } from '../core/exact.ts'
import { type Rule, type RuleOptions, ruleFactory } from '../core/rule.ts'

/** Cells before the entries: the index of the oldest entry, the number of entries, their units. */
const FIRST = 0
const COUNT = 1
const UNITS = 2
const HEAD = 3

/**
 * The state is a ring buffer of entries (microsecond, units), oldest first, in an array of its own.
 * So all functions are called with `at` 0. Spends within one microsecond share an entry.
 */
const algorithm = completeAlgorithm({
  name: 'sliding-window-log',
  code: 'E',
  mostLimit: 10_000,
  mostLimitRemedy: 'It keeps an entry per admission; use slidingWindowCounter for larger limits.',
  grows: true,
  lua: 'sliding-window-log',
  cells: () => HEAD,

  waitUs(cells, _at, rule, cost, nowUs) {
    let over = cells[UNITS] + cost - rule.limit
    for (let i = 0; over > 0 && i < cells[COUNT]; i += 1) {
      const entry = entryAt(cells, i)
      over -= cells[entry + 1]
      if (over <= 0) return Math.max(0, cells[entry] + rule.perUs - nowUs)
    }
    return 0
  },

  spend(cells, _at, rule, cost, nowUs) {
    dropExpired(cells, rule, nowUs)
    // Only debt can reach the cap.
    const units = cost > rule.limit ? Math.min(cost, MOST_COUNT - cells[UNITS]) : cost
    if (units <= 0) return
    if (cells[COUNT] > 0 && newest(cells) >= nowUs) {
      cells[entryAt(cells, cells[COUNT] - 1) + 1] += units
    } else {
      const entry = entryAt(cells, cells[COUNT])
      cells[entry] = nowUs
      cells[entry + 1] = units
      cells[COUNT] += 1
    }
    cells[UNITS] += units
  },

  refund(cells, _at, rule, cost, nowUs, spentUs) {
    dropExpired(cells, rule, nowUs)
    let left = cost
    for (let i = cells[COUNT] - 1; i >= 0 && left > 0; i -= 1) {
      const entry = entryAt(cells, i)
      if (spentUs !== RECENT && spentUs !== cells[entry]) continue
      const units = Math.min(left, cells[entry + 1])
      left -= units
      cells[entry + 1] -= units
      cells[UNITS] -= units
      if (cells[entry + 1] === 0) removeEntry(cells, i)
    }
  },

  remaining(cells, _at, rule, nowUs) {
    let used = cells[UNITS]
    for (let i = 0; i < cells[COUNT]; i += 1) {
      const entry = entryAt(cells, i)
      if (cells[entry] + rule.perUs > nowUs) break
      used -= cells[entry + 1]
    }
    return Math.max(0, rule.limit - used)
  },

  freshAtUs(cells, _at, rule) {
    return cells[COUNT] === 0 ? 0 : newest(cells) + rule.perUs
  },

  // Scales ages with the window, so that entries that count now still count.
  carry(cells, _at, from, to, nowUs) {
    if (from.perUs === to.perUs) return
    dropExpired(cells, from, nowUs)
    for (let i = 0; i < cells[COUNT]; i += 1) {
      const entry = entryAt(cells, i)
      cells[entry] = nowUs - mulDiv(Math.max(0, nowUs - cells[entry]), to.perUs, from.perUs)
    }
  },

  // Leaves one entry: the units of the fuller log, at the newest time of both.
  merge(cells, _at, other, _otherAt, rule, nowUs) {
    dropExpired(cells, rule, nowUs)
    dropExpired(other, rule, nowUs)
    const units = Math.max(cells[UNITS], other[UNITS])
    const newestUs = Math.max(newest(cells), newest(other))
    cells[FIRST] = 0
    cells[COUNT] = 1
    cells[UNITS] = units
    cells[HEAD] = newestUs
    cells[HEAD + 1] = units
  },

  // Units admitted now come back after one `per`, so every `limit` units in line take one `per`.
  lineUs(rule, waitUs, _resetUs, remaining, ahead, cost) {
    const windows = Math.ceil((ahead + cost - remaining) / rule.limit)
    return Math.max(waitUs, (windows - 1) * rule.perUs)
  },

  grow(cells, rule, nowUs) {
    dropExpired(cells, rule, nowUs)
    const slots = (cells.length - HEAD) / 2
    const count = cells[COUNT]
    if (count < slots) return cells
    // A log has more entries than the limit only when charges have left debt.
    const more = Math.max(4, 2 * slots)
    const larger = new Float64Array(
      HEAD + 2 * (count < rule.limit ? Math.min(more, rule.limit) : more),
    )
    larger[COUNT] = count
    larger[UNITS] = cells[UNITS]
    for (let i = 0; i < count; i += 1) {
      const entry = entryAt(cells, i)
      larger[HEAD + 2 * i] = cells[entry]
      larger[HEAD + 2 * i + 1] = cells[entry + 1]
    }
    return larger
  },
})

/** Returns the offset of entry `i`, counted from the oldest. */
function entryAt(cells: Float64Array, i: number): number {
  const slots = (cells.length - HEAD) / 2
  return HEAD + 2 * ((cells[FIRST] + i) % slots)
}

/** Returns the time of the newest entry; 0 if there is none. */
function newest(cells: Float64Array): number {
  return cells[COUNT] === 0 ? 0 : cells[entryAt(cells, cells[COUNT] - 1)]
}

/** Removes entry `i` and moves later entries up. */
function removeEntry(cells: Float64Array, i: number): void {
  cells[COUNT] -= 1
  for (let j = i; j < cells[COUNT]; j += 1) {
    const [entry, next] = [entryAt(cells, j), entryAt(cells, j + 1)]
    cells[entry] = cells[next]
    cells[entry + 1] = cells[next + 1]
  }
}

function dropExpired(cells: Float64Array, rule: Rule, nowUs: number): void {
  const slots = (cells.length - HEAD) / 2
  while (cells[COUNT] > 0) {
    const oldest = entryAt(cells, 0)
    if (cells[oldest] + rule.perUs > nowUs) return
    cells[UNITS] -= cells[oldest + 1]
    cells[FIRST] = (cells[FIRST] + 1) % slots
    cells[COUNT] -= 1
  }
}

/**
 * slidingWindowLog remembers every admission of the last `per`. It admits at most `limit` units in
 * every half-open interval [t, t + per), with no window edge to exploit. Each admission takes 16
 * bytes, so the limit is at most 10,000. It needs a store that can hold lists (memory, Redis).
 */
export const slidingWindowLog = ruleFactory<RuleOptions, 'sliding-window-log'>(algorithm)
