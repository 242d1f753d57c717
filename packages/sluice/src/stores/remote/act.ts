import { RECENT } from '../../core/algorithm.ts'
import { type Cost, costsAny } from '../../core/cost.ts'
import type { Decision, Source } from '../../core/decision.ts'
import type { Held } from '../../core/held.ts'
import { decisionOf } from '../../rows/decision-of.ts'
import { extendRow, finishRow } from '../../rows/hold.ts'
import type { OpenRow } from '../../rows/open-row.ts'
import { decideRow, punishRow, refundRow, spendRow } from '../../rows/row.ts'
import type { Request } from '../store.ts'
import type { Trip } from './engine.ts'
import type { RemoteRules } from './remote-rules.ts'

/**
 * Acted is called after each request, before its leased units are spent. A check or peek has a
 * decision.
 */
export type Acted = (
  request: Request,
  decision: Decision | undefined,
  leased: number,
  /** The rows of a key with fields. */
  rows?: readonly OpenRow[],
) => void

/**
 * actAll executes all requests for one key, in order, on the key's row, which is open in the set. It
 * computes what the engine has decided already, or what to write.
 */
export function actAll(first: Request, nowUs: number, acted?: Acted): void {
  for (let request: Request | undefined = first; request; request = request.next) {
    const set = request.set as RemoteRules
    const leased = act(request, set, nowUs)
    if (acted) {
      const { verb, cost } = request
      const isDecision = verb === 'check' || verb === 'peek'
      acted(request, isDecision ? decisionOn(set, set.row, cost, nowUs) : undefined, leased)
    }
    if (leased > 0) spendRow(set, set.row, leased, nowUs)
  }
}

/** Executes a request, and returns how many more units it leases. */
function act(request: Request, set: RemoteRules, nowUs: number): number {
  const { verb, cost, held, change } = request
  if (verb === 'check' || verb === 'peek') return check(request, set, nowUs)
  const holds = changeRow(request, set, set.row, { cost, held, change }, nowUs)
  request.result = holds && { ...held!, holds }
  return 0
}

/** Change has the units of a request, or its part for one field. */
interface Change {
  readonly cost: Cost
  readonly held: Held | undefined
  readonly change: Cost
}

/** changeRow executes any verb but check and peek. Returns the holds of an extended permit. */
export function changeRow(
  { verb, untilUs }: Request,
  set: RemoteRules,
  row: OpenRow,
  { cost, held, change }: Change,
  nowUs: number,
): Float64Array | undefined {
  // What has no state in the row leaves it alone: it may be that of a later version.
  row.isChanged ||= row.lines.length > 0
  if (verb === 'charge') {
    spendRow(set, row, cost, nowUs)
  } else if (verb === 'refund') {
    if (untilUs === 0 || nowUs < untilUs) refundRow(set, row, cost, nowUs, RECENT)
  } else if (verb === 'finish') {
    finishRow(set, row, held!, change, nowUs)
  } else if (verb === 'extend') {
    return extendRow(set, row, held!, nowUs) ? set.held.slice() : undefined
  } else {
    if (verb === 'reset') {
      row.cells.fill(0)
      row.lists.clear()
      row.others = []
    }
    row.isChanged = true
    row.blockUs = verb === 'block' ? nowUs + (cost as number) : 0
  }
  return undefined
}

/** decideOpen decides on an open row. Returns the longest wait, including that of a block. */
export function decideOpen(
  set: RemoteRules,
  row: OpenRow,
  cost: Cost,
  spend: boolean,
  nowUs: number,
): number {
  const blockedUs = Math.max(0, row.blockUs - nowUs)
  const wait = decideRow(set, row, cost, spend && blockedUs === 0, nowUs)
  return Math.max(wait, blockedUs)
}

function check(request: Request, set: RemoteRules, nowUs: number): number {
  const { cost, lease, generation } = request
  const isSpend = request.verb === 'check'
  const leased = lease > 0 ? leasable(set, cost as number, lease, nowUs) : 0
  set.generation = generation
  if (decideOpen(set, set.row, cost, isSpend, nowUs) > 0 || !isSpend) {
    if (isSpend && request.isCounted) punishOpen(set, set.row, nowUs)
    return leased
  }
  if (costsAny(cost) && set.lines.length > 0) set.row.isChanged = true
  if (generation > 0) request.result = { cost, spentUs: nowUs, holds: set.held.slice() }
  return leased
}

/** punishOpen counts a refusal of a row, unless its key is blocked. */
export function punishOpen(set: RemoteRules, row: OpenRow, nowUs: number): void {
  if (set.penalty === undefined || row.blockUs > nowUs) return
  const us = punishRow(set, row, nowUs)
  if (us > 0) row.blockUs = nowUs + us
  row.isChanged = true
}

/** Returns the decision that was just made on an open row. */
function decisionOn(set: RemoteRules, row: OpenRow, cost: Cost, nowUs: number): Decision {
  return decisionOf(set, row, cost, Math.max(0, row.blockUs - nowUs), nowUs)
}

/**
 * Returns how many units to lease besides `cost`: halves `wanted` until as many again would remain.
 */
function leasable(set: RemoteRules, cost: number, wanted: number, nowUs: number): number {
  if (!passes(set, cost, nowUs)) return 0
  let units = wanted
  while (units > 0 && !passes(set, cost + 2 * units, nowUs)) units = Math.floor(units / 2)
  return units
}

function passes(set: RemoteRules, cost: number, nowUs: number): boolean {
  return cost <= set.capacity && decideOpen(set, set.row, cost, false, nowUs) === 0
}

/**
 * decideHere decides locally, on a copy of a row from an earlier trip, for the engine's time by
 * now.
 */
export function decideHere(
  set: RemoteRules,
  row: OpenRow,
  { nowUs, sentMs }: Trip,
  nowMs: number,
  cost: Cost,
  spend: boolean,
  source: Source,
): Decision {
  const atUs = nowUs + Math.floor((nowMs - sentMs) * 1_000)
  decideOpen(set, row, cost, spend, atUs)
  const decision = decisionOn(set, row, cost, atUs)
  return decision.source === 'blocked' ? decision : { ...decision, source }
}
