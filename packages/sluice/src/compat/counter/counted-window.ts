import { type Algorithm, completeAlgorithm } from '../../core/algorithm.ts'
import { MOST_UNITS } from '../../core/cost.ts'
import { defineRule, type Rule } from '../../core/rule.ts'

/**
 * Beyond is what a request beyond the limit does to its key's window: nothing; `'restart'` begins
 * it anew; `'double'` makes it last once, twice, four times, … its length from now; a number keeps
 * it closed for so many milliseconds from the first such request on.
 */
export type Beyond = 'nothing' | 'restart' | 'double' | number

/** No window ends later than this from now. */
const LONGEST_US = 400 * 86_400_000_000

/** The largest limit that is told apart: requests beyond a larger one count as beyond this. */
const LARGEST_LIMIT = 900_000_000_000

/**
 * countedWindow counts requests in windows that open at a key's first request. It admits all of
 * them: the count is what other libraries compare with a limit of theirs, and go on counting beyond.
 *
 * A window stays open when all of its requests are given back, and ends when it would have.
 *
 * What has been counted is `capacity − remaining`. The rule's `limit` is what may come beyond the
 * limit that is meant, so that `remaining < limit` says that it was reached.
 */
export function countedWindow(algorithm: Algorithm, windowMs: number, limit: number): Rule {
  // A limit that is not a number is never reached.
  const told = limit <= LARGEST_LIMIT ? Math.max(0, Math.floor(limit)) : LARGEST_LIMIT
  const beyond = MOST_UNITS - told
  return defineRule(algorithm, { limit: beyond, per: windowMs })
}

/** countingAlgorithm is the algorithm of `countedWindow`. Cells: when the window ends, and the count. */
export function countingAlgorithm(beyond: Beyond): Algorithm {
  const blockUs = typeof beyond === 'number' ? Math.round(beyond * 1_000) : 0
  const suffix = typeof beyond === 'number' ? `block-${blockUs}` : beyond

  /** How long a window lasts from now on, after so many requests beyond the limit. */
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

    // A window in which everything was given back is still open.
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
