import { MOST_UNITS } from './cost.ts'
import { SluiceError, shown } from './errors.ts'
import type { Param, Params } from './params.ts'
import type { Rule } from './rule.ts'

/**
 * Algorithm is the contract every algorithm keeps: pure arithmetic over a few cells. It owns its
 * parameters and says what it can do; nothing else asks which algorithm it is.
 *
 * A state is the cells `cells[at]`, `cells[at + 1]`, … of a `Float64Array` that a store owns. They
 * hold whole numbers; cells that are all 0 are a key never seen. Times are whole microseconds. No
 * function reads a clock, allocates, or touches cells outside its own; only `take`, `spend`,
 * `refund`, `carry`, `merge` and `begin` write. `nowUs` may stand still or step back, which must
 * mint nothing.
 *
 * Make one with `defineAlgorithm`, which fills in what is optional.
 */
export interface Algorithm {
  /** Kebab-case; part of a state's identity. */
  readonly name: string
  /**
   * What stands for the name in rows of remote stores, where every key has it: a few capital letters
   * or digits. Default: the name.
   */
  readonly code: string
  /** Its parameters besides `limit` and `per`, by name. */
  readonly params: Readonly<Record<string, Param>>
  /**
   * The words that `per` may be, and how long each takes at most, in microseconds; the rule's
   * `params.per` is the word. undefined: `per` is a duration. While a store is down, each node of a
   * fleet keeps a share of the rule: of less than a unit it has one, and `perUs` is longer instead.
   */
  readonly periods: Readonly<Record<string, number>> | undefined
  /** What the option is called that gives the rule's time: `hold` where units are held. */
  readonly span: 'per' | 'hold'
  /** The largest limit, and what to do instead of a larger one. */
  readonly mostLimit: number
  /** What the error about a larger limit advises. */
  readonly mostLimitRemedy: string
  /** The most units that can ever remain, at least 1. */
  capacity(limit: number, params: Params): number
  /** Whether an admitted request may be told to wait for its slot (`delayUs`). */
  readonly delays: boolean
  /**
   * Whether units are held until they are released, rather than spent. The first cell is the row's
   * generation then, which the row sets with the first hold: a permit of another one is void.
   */
  readonly holds: boolean
  /**
   * Whether the state is a list that grows. It then has an array of its own, three cells of 0 until
   * `grow` makes a larger one, and the functions ignore `at`. Few stores can hold lists.
   */
  readonly grows: boolean
  /**
   * Whether units come back one by one, each after its gap, rather than together after `perUs`. Of
   * those that do not a node of a fleet gets a whole number of units per window.
   */
  readonly flows: boolean
  /**
   * The parameters of one node's share of a rule where a fleet has more nodes than units: windows that
   * follow the clock would let every node admit its one unit at the same edge.
   */
  sharedParams(params: Params): Params
  /**
   * Whether a node may take units ahead of time and give back what it did not spend: at any time,
   * or in a window, only until the state is fresh.
   */
  readonly lease: 'never' | 'always' | 'window'
  /**
   * How much any interval admits at most, where that grows with the windows it reaches into. Left
   * out: the capacity, and what is given back at the rule's rate.
   */
  readonly windows: ((rule: Rule) => Windows) | undefined
  /**
   * Whether a state of one cell is the instant at which it is fresh, which a unit moves by the rule's
   * gap and which may lie `fullUs` ahead at most.
   */
  readonly instant: boolean
  /**
   * The algorithm's twin for Redis, in Lua; '' if it has none. A text that ends by returning a table
   * `t` of functions that do as those here: `t.wait(s, r, cost, now)` as `waitUs`, `t.spend(…)` and
   * `t.refund(…)` alike, and `t.fresh(s, r)` as `freshAtUs`. The cells are `s[1]`, `s[2]`, …; of the
   * rule there are `r.limit`, `r.per`, `r.capacity`, `r.gap`, `r.rest`, `r.parts`, `r.full` and
   * `r.full_rest`, its own parameters by their names, `r.period`, the word where `per` is one, and
   * `r.edges`, what `edgesAround` of its windows gave; times are microseconds. `t.grows` is set where the state is a list, empty at first. Our
   * own algorithms give the name that their twin has in `algorithms/lua/index.ts`.
   */
  readonly lua: string
  /** How many cells a state of this rule takes. 0: the rule keeps no state. */
  cells(rule: Rule): number
  /** Microseconds until `cost`, at most the rule's capacity, would pass; 0 when it passes now. */
  waitUs(cells: Float64Array, at: number, rule: Rule, cost: number, nowUs: number): number
  /** Both in one, for the fast path: spends if `cost` passes, and answers like `waitUs`. */
  take(cells: Float64Array, at: number, rule: Rule, cost: number, nowUs: number): number
  /** Debits `cost`, at least 1, whether it fits or leaves debt. */
  spend(cells: Float64Array, at: number, rule: Rule, cost: number, nowUs: number): void
  /**
   * Gives back `cost` units that were spent at `spentUs`, as far as they still count: nothing of a
   * window that has closed, of a bucket what has not refilled since, of a log its own entry. With
   * `RECENT` it undoes the latest spends, whenever they were made.
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
   * Ends a hold of `cost` units, of which `holdAt` told `hold`; false if it has ended before. Only for
   * algorithms that hold.
   */
  release(
    cells: Float64Array,
    at: number,
    rule: Rule,
    cost: number,
    hold: number,
    nowUs: number,
  ): boolean
  /** Right after a spend: what `release` has to know of that hold. */
  holdAt(cells: Float64Array, at: number): number
  /**
   * After a refusal by the other rules of the row: counts it, and gives for how many microseconds the key
   * is to be blocked. A rule with it stands behind the others, refuses nothing and is told to no caller.
   */
  readonly punish:
    | ((cells: Float64Array, at: number, rule: Rule, nowUs: number) => number)
    | undefined
  /** Whole units that would pass now, from 0 to capacity. */
  remaining(cells: Float64Array, at: number, rule: Rule, nowUs: number): number
  /** The first microsecond from which on the state equals a key never seen; at most 0 if it does. */
  freshAtUs(cells: Float64Array, at: number, rule: Rule): number
  /** Before a spend: microseconds until the slot of its first unit. */
  delayUs(cells: Float64Array, at: number, rule: Rule, nowUs: number): number
  /** Rewrites a state of rule `from` for rule `to`, with the same units used at `nowUs`. */
  carry(cells: Float64Array, at: number, from: Rule, to: Rule, nowUs: number): void
  /**
   * Makes the state the harder of two: from now on it admits nothing that either would refuse.
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
  /** A key that starts from the units of others, by `merge`, is about to spend for the first time. */
  begin(cells: Float64Array, at: number, rule: Rule, nowUs: number): void
  /**
   * From the figures of a decision about `cost`: the least microseconds until it can pass, or until
   * its slot, with `ahead` units in line before it. Never too many.
   */
  lineUs(
    rule: Rule,
    waitUs: number,
    resetUs: number,
    remaining: number,
    ahead: number,
    cost: number,
  ): number
  /** Before a spend, for a list: the cells themselves if one more entry fits, else a larger copy. */
  grow(cells: Float64Array, rule: Rule, nowUs: number): Float64Array
}

/** Windows: an interval admits at most `units` for each of the windows that it reaches into. */
export interface Windows {
  /** The most units that a window admits. */
  readonly units: number
  /** The shortest that a window can be, in microseconds. */
  readonly leastUs: number
  /** Whether they begin at given instants, so that an interval of `leastUs` may reach into two. */
  readonly edges: boolean
  /**
   * Where a twin cannot work out when they begin, as in time zones: the instants around `nowUs` at which
   * they do, ascending, with the whole window before that of `nowUs` and the one after it. The twin has
   * them as `r.edges`. An engine whose clock is not between the first and the last decides nothing, and
   * is asked again.
   */
  readonly edgesAround?: (nowUs: number) => readonly number[]
}

/** RECENT stands for the instant of a spend that is not known: it was the latest. */
export const RECENT = Number.MAX_SAFE_INTEGER

/** What an algorithm must bring, and what it may. */
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

/** GivenAlgorithm is what makes an algorithm: what it must bring, and what it brings besides. */
export type GivenAlgorithm = Omit<Algorithm, Optional> & Partial<Pick<Algorithm, Optional>>

/** completeAlgorithm is `defineAlgorithm` without its checks: ours need none. */
export function completeAlgorithm(given: GivenAlgorithm): Algorithm {
  // Always all fields, always in this order: one hidden class, so call sites stay monomorphic.
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
 * checkedWait is a wait as an algorithm gave it, and 0 where that is below 0. It throws where it is
 * not a number: neither to admit nor to refuse would be right.
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

/** takeBy makes `take` of its two steps. */
export function takeBy({ waitUs, spend }: Pick<Algorithm, 'waitUs' | 'spend'>): Algorithm['take'] {
  return (cells, at, rule, cost, nowUs) => {
    const wait = checkedWait(waitUs(cells, at, rule, cost, nowUs), rule)
    if (wait === 0 && cost > 0) spend(cells, at, rule, cost, nowUs)
    return wait
  }
}
