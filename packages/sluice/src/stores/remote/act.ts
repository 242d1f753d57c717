import type { OpenRow } from '../../rows/open-row.ts'
import { decideRow, readRest, refundRow, spendRow, waitOf } from '../../rows/row.ts'
import type { Request } from '../store.ts'
import type { Trip } from './engine.ts'
import type { RemoteRules } from './remote-rules.ts'

/** Acted is told of each request once its readings are in its set, before leased units are spent. */
export type Acted = (request: Request, leased: number) => void

/**
 * actAll does all requests about one key, in order, with its row, which is open in the set. So it is
 * worked out what an engine has done, or what it is to write.
 */
export function actAll(first: Request, nowUs: number, acted?: Acted): void {
  for (let request: Request | undefined = first; request; request = request.next) {
    const set = request.set as RemoteRules
    const leased = act(request, set, nowUs)
    if (acted) {
      const { verb } = request
      if (verb === 'check' || verb === 'peek') readRest(set, set.row.cells, 0, set.row.lists, nowUs)
      acted(request, leased)
    }
    if (leased > 0) spendRow(set, set.row.cells, 0, set.row.lists, leased, nowUs)
  }
}

/** Does what a request asks for, and gives how many units more are leased with it. */
function act(request: Request, set: RemoteRules, nowUs: number): number {
  const { verb, cost } = request
  const { row } = set
  const { cells, lists } = row
  if (verb === 'check' || verb === 'peek') {
    const leased = request.lease > 0 ? leasable(set, cost, request.lease, nowUs) : 0
    const blockedUs = row.blockUs > nowUs ? row.blockUs - nowUs : 0
    const wait = decideRow(set, cells, 0, lists, cost, verb === 'check', blockedUs, nowUs)
    if (wait === 0 && cost > 0 && verb === 'check') row.isChanged = true
    return leased
  }
  row.isChanged = true
  if (verb === 'charge') {
    if (cost > 0) spendRow(set, cells, 0, lists, cost, nowUs)
  } else if (verb === 'refund') {
    const { untilUs } = request
    if (untilUs === 0 || nowUs < untilUs) refundRow(set, cells, 0, lists, cost, nowUs)
  } else if (verb === 'reset') {
    cells.fill(0)
    lists.clear()
    row.others = []
    row.blockUs = 0
  } else {
    row.blockUs = verb === 'block' ? nowUs + cost : 0
  }
  return 0
}

/** How many units go with a cost that passes: halved until as many again would be left. */
function leasable(set: RemoteRules, cost: number, wanted: number, nowUs: number): number {
  if (!passes(set, cost, nowUs)) return 0
  let units = wanted
  while (units > 0 && !passes(set, cost + 2 * units, nowUs)) units = Math.floor(units / 2)
  return units
}

function passes(set: RemoteRules, cost: number, nowUs: number): boolean {
  const { cells, lists, blockUs } = set.row
  return blockUs <= nowUs && cost <= set.capacity && waitOf(set, cells, 0, lists, cost, nowUs) === 0
}

/**
 * decideLocally decides on a copy of a row that a trip has found, at a later moment of our clock,
 * into the set's readings.
 */
export function decideLocally(
  set: RemoteRules,
  { cells, lists, blockUs }: OpenRow,
  { nowUs, sentMs }: Trip,
  nowMs: number,
  cost: number,
  spend: boolean,
): void {
  const atUs = nowUs + Math.floor((nowMs - sentMs) * 1_000)
  const blockedUs = blockUs > atUs ? blockUs - atUs : 0
  decideRow(set, cells, 0, lists, cost, spend, blockedUs, atUs)
  readRest(set, cells, 0, lists, atUs)
}
