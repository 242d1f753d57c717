import { type Algorithm, completeAlgorithm } from '../../core/algorithm.ts'
import { MOST_UNITS } from '../../core/cost.ts'
import { defineRule, type Rule } from '../../core/rule.ts'

/**
 * Beyond is the effect of a request beyond the limit on its key's window: none; `'restart'` restarts
 * it; `'double'` makes it end one, two, four, … lengths from now; a number blocks the key for that
 * many milliseconds from the first such request on.
 */
export type Beyond = 'nothing' | 'restart' | 'double' | number

/** The longest time until the end of a window. */
const LONGEST_US = 400 * 86_400_000_000

/** The largest supported limit. Larger limits count as this one. */
const LARGEST_LIMIT = 900_000_000_000

/**
 * countedWindow counts requests in windows that open at a key's first request. It admits all of
 * them: other libraries compare the count with their own limit, and keep counting beyond it.
 *
 * A window in which all requests are decremented stays open until its end.
 *
 * The count is `capacity − remaining`. The rule's `limit` is the capacity beyond the library's
 * limit, so `remaining < limit` means that the library's limit is exceeded.
 */
export function countedWindow(algorithm: Algorithm, windowMs: number, limit: number): Rule {
  // A limit that is not a number is never reached.
  const told = limit <= LARGEST_LIMIT ? Math.max(0, Math.floor(limit)) : LARGEST_LIMIT
  const beyond = MOST_UNITS - told
  return defineRule(algorithm, { limit: beyond, per: windowMs })
}

/**
 * countingAlgorithm creates the algorithm of `countedWindow`. Cells: when the window ends, and the
 * count.
 */
export function countingAlgorithm(beyond: Beyond): Algorithm {
  const blockUs = typeof beyond === 'number' ? Math.round(beyond * 1_000) : 0
  const suffix = typeof beyond === 'number' ? `block-${blockUs}` : beyond

  /** Returns how long a window lasts from now on after `extra` requests beyond the limit. */
  function longerUs(rule: Rule, extra: number): number {
    if (beyond === 'restart') return rule.perUs
    if (beyond === 'double') return rule.perUs * 2 ** (extra - 1)
    return extra === 1 ? blockUs : 0
  }

  return completeAlgorithm({
    name: beyond === 'nothing' ? 'counted-window' : `counted-window-${suffix}`,
    capacity: () => MOST_UNITS,
    lua: lua(beyond, blockUs),
    cells: () => 2,
    waitUs: () => 0,

    spend(cells, at, rule, cost, nowUs) {
      const used = usedIn(cells, at, nowUs)
      if (nowUs >= cells[at]) cells[at] = nowUs + rule.perUs
      cells[at + 1] = Math.min(used + cost, rule.capacity)
      const extra = cells[at + 1] - (rule.capacity - rule.limit)
      const lastsUs = extra > 0 ? longerUs(rule, extra) : 0
      if (lastsUs > 0) cells[at] = nowUs + Math.min(lastsUs, LONGEST_US)
    },

    refund(cells, at, _rule, cost, nowUs) {
      cells[at + 1] = Math.max(0, usedIn(cells, at, nowUs) - cost)
    },

    remaining: (cells, at, rule, nowUs) => rule.capacity - usedIn(cells, at, nowUs),

    // A window in which all requests were decremented is still open.
    freshAtUs: (cells, at) => cells[at],

    merge(cells, at, other, otherAt) {
      if (other[otherAt + 1] === 0) return
      cells[at] = Math.max(cells[at], other[otherAt])
      cells[at + 1] = Math.max(cells[at + 1], other[otherAt + 1])
    },

    begin(cells, at, rule, nowUs) {
      if (cells[at + 1] > 0) cells[at] = nowUs + rule.perUs
    },
  })
}

function usedIn(cells: Float64Array, at: number, nowUs: number): number {
  return nowUs < cells[at] ? cells[at + 1] : 0
}

function lua(beyond: Beyond, blockUs: number): string {
  const lasts = {
    nothing: '0',
    restart: 'r.per',
    double: 'r.per * 2 ^ (extra - 1)',
    block: `(extra == 1 and ${blockUs} or 0)`,
  }[typeof beyond === 'number' ? 'block' : beyond]
  return `
local t = {}
local function used_in(s, now) return now < s[1] and s[2] or 0 end
function t.wait() return 0 end
function t.spend(s, r, cost, now)
  local used = used_in(s, now)
  if now >= s[1] then s[1] = now + r.per end
  s[2] = math.min(used + cost, r.capacity)
  local extra = s[2] - (r.capacity - r.limit)
  local lasts = extra > 0 and ${lasts} or 0
  if lasts > 0 then s[1] = now + math.min(lasts, ${LONGEST_US}) end
end
function t.refund(s, r, cost, now) s[2] = math.max(0, used_in(s, now) - cost) end
function t.fresh(s) return s[1] end
return t`
}
