import { closeRow, openRow } from '../../rows/open-row.ts'
import type { Request } from '../store.ts'
import { type Acted, actAll } from './act.ts'
import type { Engine, RowChange } from './engine.ts'
import { requestsOf } from './queue.ts'
import type { RemoteRules } from './remote-rules.ts'

/** FoundRow is the row of a key as a trip found it, and the requests about it. */
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

/** A row to be replaced, and what is decided with that. */
interface Plan {
  readonly row: FoundRow
  readonly change: RowChange
}

/**
 * swapRows does the requests of rows that were only read: it decides with the algorithms' own code,
 * and replaces each row that changes, unless another writer was faster. It returns the requests of
 * rows that were lost to one. Rows are swapped together at first, and alone once one was lost.
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

/** Decides what a row becomes; undefined, with the requests answered, where it stays as it is. */
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

/** Does the requests once more, with the row as it was found, and answers them. */
function answer({ first, text, nowUs, acted }: FoundRow): void {
  openRow((first.set as RemoteRules).row, text, nowUs)
  actAll(first, nowUs, acted)
}

function isOnlyLooking(first: Request): boolean {
  return requestsOf(first).every(({ verb }) => verb === 'peek')
}
