import { closeRow, openRow } from '../../rows/open-row.ts'
import type { Request } from '../store.ts'
import { type Acted, actAll } from './act.ts'
import type { Engine, RowChange } from './engine.ts'
import { requestsOf } from './queue.ts'
import type { RemoteRules } from './remote-rules.ts'

/** FoundRow is the row of a key as a trip read it, and the requests for that key. */
export interface FoundRow {
  readonly first: Request
  readonly name: string
  readonly text: string | null
  readonly version: unknown
  readonly nowUs: number
  readonly untilUs: number
  readonly acted: Acted
}

type Failed = (request: Request, error: unknown) => void

/** A planned swap, and the row whose requests it decides. */
interface Plan {
  readonly row: FoundRow
  readonly change: RowChange
}

/**
 * swapRows executes the requests of rows that were only read. It decides with the algorithms' own
 * code and swaps each row that changes. Returns the requests of rows that another writer has
 * changed since. It swaps rows together at first, and one by one after a loss.
 */
export async function swapRows(
  rows: readonly FoundRow[],
  engine: Engine,
  failed: Failed,
): Promise<Request[]> {
  const plans = rows.flatMap((row) => planOf(row, engine) ?? [])
  const isAlone = ({ row }: Plan) => engine.isRowwise || row.first.isContended
  const together = plans.filter((plan) => !isAlone(plan))
  const groups = plans.filter(isAlone).map((plan) => [plan])
  if (together.length > 0) groups.push(together)
  const lost = await Promise.all(groups.map((group) => swapGroup(group, engine, failed)))
  return lost.flat()
}

async function swapGroup(
  group: readonly Plan[],
  engine: Engine,
  failed: Failed,
): Promise<Request[]> {
  try {
    if (await engine.swap(group.map(({ change }) => change))) {
      for (const { row } of group) answer(row)
      return []
    }
    const lost = group.map(({ row }) => row.first)
    for (const request of lost.flatMap(requestsOf)) request.isContended = true
    return lost
  } catch (error) {
    for (const { row } of group) for (const each of requestsOf(row.first)) failed(each, error)
    return []
  }
}

/**
 * Decides a row's new text. If the row does not change, answers the requests and returns undefined.
 */
function planOf(row: FoundRow, engine: Engine): Plan | undefined {
  const { first, name, text, version, nowUs, untilUs } = row
  const open = openRow((first.set as RemoteRules).row, text, nowUs)
  actAll(first, nowUs)
  const isWritten = open.isChanged || (open.isCarried && !isOnlyLooking(first))
  const { text: to, ...expiry } = closeRow(open, nowUs, engine.tellsExpiry)
  if (!isWritten || to === (text ?? '')) {
    answer(row)
    return undefined
  }
  const change = { name, from: text, version, to: to || null, ...expiry, nowUs, untilUs }
  return { row, change }
}

/** Executes the requests again on the row as it was read, and answers them. */
function answer({ first, text, nowUs, acted }: FoundRow): void {
  openRow((first.set as RemoteRules).row, text, nowUs)
  actAll(first, nowUs, acted)
}

function isOnlyLooking(first: Request): boolean {
  return requestsOf(first).every(({ verb }) => verb === 'peek')
}
