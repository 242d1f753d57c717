// Longer than the other files: the contract of algorithms, with its defaults and checks, reads best on one page.

import { MOST_UNITS } from './cost.ts'
import { SluiceError, shown } from './errors.ts'
import type { Param, Params } from './params.ts'
import type { Rule } from './rule.ts'

/**
 * Algorithm is the contract of every algorithm: pure arithmetic over a few cells. It owns its
 * parameters and declares its capabilities; no other code depends on which algorithm it is.
 *
 * A state is the cells `cells[at]`, `cells[at + 1]`, … of a `Float64Array` that a store owns. They
 * hold whole numbers; the state of a key never seen is all 0. Times are whole microseconds. No
 * function reads a clock, allocates, or accesses cells of other states. Only `take`, `spend`,
 * `refund`, `carry`, `merge`, `begin`, `release`, `punish` and `grow` write. `nowUs` may stand
 * still or step back, which must not add units.
 *
 * Create one with `defineAlgorithm`, which fills in the optional members.
 */
export interface Algorithm {
  /** Kebab-case; part of a state's identity. */
  readonly name: string
  /**
   * The short form of the name in rows of remote stores, where every key has it: 1 to 8 capital
   * letters or digits. Default: the name.
   */
  readonly code: string
  /** Its parameters besides `limit` and `per`, by name. */
  readonly params: Readonly<Record<string, Param>>
  /**
   * The words that `per` may be, each with its longest duration in microseconds; the rule's
   * `params.per` is the word. If undefined, `per` is a duration. While a store is down, each node
   * of a fleet enforces a share of the rule: a share below one unit has one unit and a longer
   * `perUs`.
   */
  readonly periods: Readonly<Record<string, number>> | undefined
  /** The name of the option for the rule's time: `hold` if the rule holds units. */
  readonly span: 'per' | 'hold'
  /** The largest limit. */
  readonly mostLimit: number
  /** The advice in the error about a larger limit. */
  readonly mostLimitRemedy: string
  /** The most units that can ever remain, at least 1. */
  capacity(limit: number, params: Params): number
  /** Whether an admitted request may be told to wait for its slot (`delayUs`). */
  readonly delays: boolean
  /**
   * Whether units are held until they are released, rather than spent. If so, the first cell is the
   * row's generation, which the row sets at the first hold: permits of other generations are void.
   */
  readonly holds: boolean
  /**
   * Whether the state is a list that grows. It then has its own array, three cells of 0 until `grow`
   * returns a larger one, and the functions ignore `at`. Few stores support lists.
   */
  readonly grows: boolean
  /**
   * Whether units come back one by one, each after its gap, rather than together after `perUs`. If
   * not, a node of a fleet gets a whole number of units per window.
   */
  readonly flows: boolean
  /**
   * Returns the parameters of one node's share if a fleet has more nodes than units: with windows
   * aligned to the clock, every node would admit its one unit at the same edge.
   */
  sharedParams(params: Params): Params
  /**
   * Whether a node may lease units and return unused ones: at any time, or, for a window, only until
   * the state is fresh.
   */
  readonly lease: 'never' | 'always' | 'window'
  /**
   * The most that an interval admits, if that depends on the windows it overlaps. Default: the
   * capacity, and the units that refill at the rule's rate.
   */
  readonly windows: ((rule: Rule) => Windows) | undefined
  /**
   * Whether a state of one cell is the instant at which it is fresh. Each unit moves it by the
   * rule's gap, and it lies at most `fullUs` ahead.
   */
  readonly instant: boolean
  /**
   * The algorithm's twin for Redis, in Lua; '' if it has none. The text returns a table `t` of
   * functions like those here: `t.wait(s, r, cost, now)` for `waitUs`, `t.spend(s, r, cost, now)`,
   * `t.refund(s, r, cost, now, spent)`, and `t.fresh(s, r)` for `freshAtUs`. The cells are `s[1]`,
   * `s[2]`, …; `t.grows` is true if the state is a list, which is empty at first. The rule has
   * `r.limit`, `r.per`, `r.capacity`, `r.gap`, `r.rest`, `r.parts`, `r.full`, `r.full_rest`, its
   * parameters by name, `r.period` if `per` is a word, and `r.edges` from `edgesAround`. Times are
   * microseconds. Built-in algorithms have the name of their twin in `algorithms/lua/index.ts`
   * here.
   */
  readonly lua: string
  /** Returns how many cells a state of this rule takes; 0 if the rule keeps no state. */
  cells(rule: Rule): number
  /**
   * Returns the microseconds until `cost`, at most the rule's capacity, would pass; 0 if it passes
   * now.
   */
  waitUs(cells: Float64Array, at: number, rule: Rule, cost: number, nowUs: number): number
  /**
   * Does both in one step, for the fast path: spends if `cost` passes, and returns what `waitUs`
   * does.
   */
  take(cells: Float64Array, at: number, rule: Rule, cost: number, nowUs: number): number
  /** Debits `cost`, at least 1, whether it fits or leaves debt. */
  spend(cells: Float64Array, at: number, rule: Rule, cost: number, nowUs: number): void
  /**
   * Refunds `cost` units that were spent at `spentUs`, as far as they still count: nothing in a
   * closed window, in a bucket what has not refilled since, in a log its own entry. With `RECENT`
   * it undoes the latest spends.
   */
  refund(
    cells: Float64Array,
    at: number,
    rule: Rule,
    cost: number,
    nowUs: number,
    spentUs: number,
  ): void
  /**
   * Ends a hold of `cost` units, which `holdAt` identified by `hold`; false if it had ended already.
   * Only for algorithms that hold units.
   */
  release(
    cells: Float64Array,
    at: number,
    rule: Rule,
    cost: number,
    hold: number,
    nowUs: number,
  ): boolean
  /** Returns the value by which `release` identifies the hold. Call right after the spend. */
  holdAt(cells: Float64Array, at: number): number
  /**
   * Counts a refusal by the other rules of the row, and returns for how many microseconds to block
   * the key; 0 for none. A rule with it is the last of its row, refuses nothing and is in no
   * decision.
   */
  readonly punish:
    | ((cells: Float64Array, at: number, rule: Rule, nowUs: number) => number)
    | undefined
  /** Returns the whole units that would pass now, from 0 to the capacity. */
  remaining(cells: Float64Array, at: number, rule: Rule, nowUs: number): number
  /**
   * Returns the first microsecond at which the state equals that of a key never seen. May lie in
   * the past.
   */
  freshAtUs(cells: Float64Array, at: number, rule: Rule): number
  /** Returns the microseconds until the slot of the first unit. Call before the spend. */
  delayUs(cells: Float64Array, at: number, rule: Rule, nowUs: number): number
  /** Converts a state of rule `from` to rule `to`, with the same units used at `nowUs`. */
  carry(cells: Float64Array, at: number, from: Rule, to: Rule, nowUs: number): void
  /**
   * Makes the state the stricter of two: from now on it admits nothing that either would refuse.
   * It may be all 0; `other` is not fresh. Both are of the same rule.
   */
  merge(
    cells: Float64Array,
    at: number,
    other: Float64Array,
    otherAt: number,
    rule: Rule,
    nowUs: number,
  ): void
  /** Called before the first spend of a key whose state comes from `merge` with evicted keys. */
  begin(cells: Float64Array, at: number, rule: Rule, nowUs: number): void
  /**
   * Returns the least microseconds until `cost` can pass, or until its slot, with `ahead` units
   * queued before it. Computes it from a decision about `cost`. Never too many.
   */
  lineUs(
    rule: Rule,
    waitUs: number,
    resetUs: number,
    remaining: number,
    ahead: number,
    cost: number,
  ): number
  /** Returns the cells of a list if one more entry fits, else a larger copy. Call before a spend. */
  grow(cells: Float64Array, rule: Rule, nowUs: number): Float64Array
}

/** Windows bounds admissions: an interval admits at most `units` for each window that it overlaps. */
export interface Windows {
  /** The most units that a window admits. */
  readonly units: number
  /** The shortest window, in microseconds. */
  readonly leastUs: number
  /** Whether windows have fixed edges, so that an interval of `leastUs` may overlap two. */
  readonly edges: boolean
  /**
   * Returns the edges around `nowUs`, ascending, with the whole previous and next window. Only if a
   * twin cannot compute them, as with time zones. The twin gets them as `r.edges`. An engine whose
   * clock is outside these edges decides nothing, and the request is retried.
   */
  readonly edgesAround?: (nowUs: number) => readonly number[]
}

/** RECENT stands for an unknown spend instant: that of the latest spends. */
export const RECENT = Number.MAX_SAFE_INTEGER

/** The required members of a given algorithm, and the optional ones. */
export const required = ['cells', 'waitUs', 'spend', 'remaining', 'freshAtUs', 'merge'] as const
export const optional = [
  'code',
  'params',
  'periods',
  'mostLimit',
  'mostLimitRemedy',
  'capacity',
  'lua',
  'span',
  'delays',
  'holds',
  'grows',
  'flows',
  'sharedParams',
  'lease',
  'windows',
  'instant',
  'take',
  'refund',
  'release',
  'holdAt',
  'punish',
  'delayUs',
  'carry',
  'begin',
  'lineUs',
  'grow',
] as const

type Optional = (typeof optional)[number]

/** GivenAlgorithm is an algorithm without the members that have defaults. */
export type GivenAlgorithm = Omit<Algorithm, Optional> & Partial<Pick<Algorithm, Optional>>

/** completeAlgorithm is `defineAlgorithm` without checks, for built-in algorithms. */
export function completeAlgorithm(given: GivenAlgorithm): Algorithm {
  // Always all fields in the same order: one hidden class keeps call sites monomorphic.
  return Object.freeze({
    name: given.name,
    code: given.code ?? given.name,
    params: given.params ?? {},
    periods: given.periods,
    span: given.span ?? 'per',
    mostLimit: given.mostLimit ?? MOST_UNITS,
    mostLimitRemedy: given.mostLimitRemedy ?? '',
    capacity: given.capacity ?? ((limit) => limit),
    delays: given.delays ?? false,
    holds: given.holds ?? false,
    grows: given.grows ?? false,
    flows: given.flows ?? false,
    sharedParams: given.sharedParams ?? ((params) => params),
    lease: given.lease ?? 'never',
    windows: given.windows,
    instant: given.instant ?? false,
    lua: given.lua ?? '',
    cells: given.cells,
    waitUs: given.waitUs,
    take: given.take ?? takeBy(given),
    spend: given.spend,
    refund: given.refund ?? (() => {}),
    release: given.release ?? (() => false),
    holdAt: given.holdAt ?? (() => 0),
    punish: given.punish,
    remaining: given.remaining,
    freshAtUs: given.freshAtUs,
    delayUs: given.delayUs ?? (() => 0),
    carry: given.carry ?? (() => {}),
    merge: given.merge,
    begin: given.begin ?? (() => {}),
    lineUs: given.lineUs ?? ((_rule, waitUs) => waitUs),
    grow: given.grow ?? ((cells) => cells),
  })
}

/**
 * checkedWait returns a wait of an algorithm, 0 for a negative one. Throws `SLUICE_ALGORITHM` if it
 * is NaN or not a number, since neither an admission nor a refusal would be right.
 */
export function checkedWait(waitUs: number, rule: Rule): number {
  if (waitUs > 0) return waitUs
  if (waitUs <= 0) return 0
  throw notAWait(waitUs, rule)
}

function notAWait(waitUs: number, rule: Rule): SluiceError {
  return new SluiceError(
    'SLUICE_ALGORITHM',
    `rule "${rule.name}": waitUs of the algorithm ${rule.algorithm.name} must give a number of ` +
      `microseconds, got ${shown(waitUs)}.`,
  )
}

/** takeBy derives `take` from `waitUs` and `spend`. */
export function takeBy({ waitUs, spend }: Pick<Algorithm, 'waitUs' | 'spend'>): Algorithm['take'] {
  return (cells, at, rule, cost, nowUs) => {
    const wait = checkedWait(waitUs(cells, at, rule, cost, nowUs), rule)
    if (wait === 0 && cost > 0) spend(cells, at, rule, cost, nowUs)
    return wait
  }
}
