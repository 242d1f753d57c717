import { closeRow, freshRow, type OpenRow, openRow } from '../../rows/open-row.ts'
import type { Request } from '../store.ts'
import type { Acted } from './act.ts'
import type { Batch, Engine, Found, JointBatch, RowChange } from './engine.ts'
import { actJointAll } from './joint-act.ts'
import { requestsOf } from './queue.ts'
import type { RemoteRules } from './remote-rules.ts'

/** jointBatch lists the rows of requests about keys with fields, each row once. */
export function jointBatch(firsts: readonly Request[]): Pick<Batch, 'names' | 'joint'> {
  const names: string[] = []
  const sets: RemoteRules[] = []
  const known = new Map<string, number>()
  const places = firsts.map(({ rows }) =>
    rows!.map(({ name, set }) => {
      const place = known.get(name)
      if (place !== undefined) return place
      known.set(name, names.length)
      sets.push(set as RemoteRules)
      return names.push(name) - 1
    }),
  )
  return { names, joint: { places, sets } }
}

/** OpenBatch opens the rows of a trip. */
export interface OpenBatch {
  /** Returns the rows of `firsts[i]`. */
  rowsOf(i: number): readonly OpenRow[]
  /** The rows opened so far, by index in `names`. */
  readonly opened: readonly (OpenRow | undefined)[]
}

/** openBatch opens each row once, on demand: later requests see the changes of earlier ones. */
export function openBatch(
  { places, sets }: JointBatch,
  texts: readonly (string | null)[],
  nowUs: number,
): OpenBatch {
  const opened: (OpenRow | undefined)[] = new Array(sets.length)
  function open(place: number): OpenRow {
    opened[place] ??= openRow(freshRow(sets[place].row), texts[place], nowUs)
    return opened[place]
  }
  return { opened, rowsOf: (i) => places[i].map(open) }
}

/** JointFound is a trip that only read rows, and the requests still to execute. */
export interface JointFound {
  readonly batch: Batch
  readonly joint: JointBatch
  readonly found: Found
  readonly texts: readonly (string | null)[]
  /** Indexes of their first requests in `firsts`. */
  readonly todo: readonly number[]
  readonly untilUs: number
  readonly acted: Acted
}

/**
 * swapJoint executes requests on rows that were only read, and replaces all rows that change, or
 * none. Returns the requests that lost to another writer. It swaps all requests together at first,
 * and one by one after a loss or if the engine swaps single rows (then each request has one row).
 */
export async function swapJoint(
  all: JointFound,
  engine: Engine,
  failed: (request: Request, error: unknown) => void,
): Promise<Request[]> {
  const { firsts } = all.batch
  const isAlone = (i: number) => engine.isRowwise || firsts[i].isContended
  const groups = all.todo.filter(isAlone).map((i) => [i])
  const together = all.todo.filter((i) => !isAlone(i))
  if (together.length > 0) groups.push(together)
  const lost: Request[] = []
  for (const todo of groups) {
    const group = { ...all, todo }
    try {
      if (await swapGroup(group, engine)) act(group, all.acted)
      else lost.push(...todo.map((i) => firsts[i]))
    } catch (error) {
      for (const i of todo) for (const each of requestsOf(firsts[i])) failed(each, error)
    }
  }
  for (const request of lost.flatMap(requestsOf)) request.isContended = true
  return lost
}

/** Executes the requests on the rows as they were read. */
function act({ batch, joint, found, texts, todo }: JointFound, acted?: Acted) {
  const { opened, rowsOf } = openBatch(joint, texts, found.nowUs)
  for (const i of todo) actJointAll(batch.firsts[i], rowsOf(i), found.nowUs, acted)
  return opened
}

async function swapGroup(group: JointFound, engine: Engine): Promise<boolean> {
  const { batch, found, texts, todo, untilUs } = group
  const { nowUs, versions } = found
  // If requests only peek, or charge other rows, do not rewrite a row just to carry it over.
  const isLooking = todo.every((i) =>
    requestsOf(batch.firsts[i]).every(({ verb }) => verb === 'peek' || verb === 'charge'),
  )
  const changes: RowChange[] = []
  for (const [place, row] of act(group).entries()) {
    if (!row) continue
    if (!row.isChanged && (!row.isCarried || isLooking)) continue
    const { text: to, ...expiry } = closeRow(row, nowUs, engine.tellsExpiry)
    const from = texts[place]
    if (to === (from ?? '')) continue
    const change = { name: batch.names[place], from, version: versions?.[place], nowUs, untilUs }
    changes.push({ ...change, to: to || null, ...expiry })
  }
  return changes.length === 0 || engine.swap(changes)
}
