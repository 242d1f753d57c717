import { completeAlgorithm } from '../core/algorithm.ts'
import { durationUs } from '../core/duration.ts'
import { SluiceError, shown } from '../core/errors.ts'
import type { Param } from '../core/params.ts'
import { type Rule, type RuleOptions, ruleFactory } from '../core/rule.ts'

/** PenaltyRuleOptions: `limit` refusals within `per` block the key. */
interface PenaltyRuleOptions extends RuleOptions {
  /** The duration of each block in milliseconds, separated by commas. The last one repeats. */
  readonly block: string
}

const DAY_MS = 86_400_000

/** A penalty is forgotten this many block durations after the block, and at least `per` after it. */
const FORGOTTEN = 10

/** blocksText returns the durations of blocks as the `block` parameter of a penalty rule. */
export function blocksText(where: string, blocks: readonly unknown[]): string {
  return blocks.map((block) => durationUs(where, block, 1, 400 * DAY_MS) / 1_000).join()
}

const block: Param = {
  kind: 'word',
  choices: undefined,
  fallback: () => '60000',
  check(where, value) {
    if (typeof value === 'string' && /^\d{1,11}(,\d{1,11})*$/.test(value)) return value
    throw new SluiceError(
      'SLUICE_OPTION',
      `${where} must be milliseconds separated by commas, such as '60000,600000', got ${shown(value)}.`,
    )
  },
}

/** Cells: the window's start, its refusals, the blocks so far, and when those are forgotten. */
const SINCE = 0
const REFUSALS = 1
const BLOCKS = 2
const FORGET = 3

const algorithm = completeAlgorithm({
  name: 'penalty',
  code: 'P',
  params: { block },
  mostLimit: 1_000_000,
  lua: 'penalty',
  cells: () => 4,
  waitUs: () => 0,
  spend() {},
  remaining: (_cells, _at, rule) => rule.limit,
  freshAtUs(cells, at, rule) {
    const counted = cells[at + REFUSALS] > 0 ? cells[at + SINCE] + rule.perUs : 0
    return Math.max(counted, cells[at + FORGET])
  },
  merge() {},

  punish(cells, at, rule, nowUs) {
    const isOpen = cells[at + REFUSALS] > 0 && nowUs < cells[at + SINCE] + rule.perUs
    if (!isOpen) cells[at + SINCE] = nowUs
    const refusals = isOpen ? cells[at + REFUSALS] + 1 : 1
    cells[at + REFUSALS] = refusals < rule.limit ? refusals : 0
    if (refusals < rule.limit) return 0
    const before = nowUs < cells[at + FORGET] ? cells[at + BLOCKS] : 0
    const us = blocksOf(rule)[Math.min(before, blocksOf(rule).length - 1)]
    cells[at + BLOCKS] = before + 1
    cells[at + FORGET] = nowUs + us + Math.max(FORGOTTEN * us, rule.perUs)
    return us
  },
})

const known = new WeakMap<Rule, readonly number[]>()

/** Returns the duration of each block, in microseconds. */
function blocksOf(rule: Rule): readonly number[] {
  let blocks = known.get(rule)
  if (!blocks) {
    blocks = String(rule.params.block)
      .split(',')
      .map((ms) => Number(ms) * 1_000)
    known.set(rule, blocks)
  }
  return blocks
}

/** penaltyRule counts the refusals of a key by its other rules, and tells when to block the key. */
export const penaltyRule = ruleFactory<PenaltyRuleOptions, 'penalty'>(algorithm)
