import { openRow } from '../../rows/open-row.ts'
import type { Request } from '../store.ts'
import { type Acted, actAll } from './act.ts'
import type { Batch, Engine, Found, JointBatch } from './engine.ts'
import { actJointAll } from './joint-act.ts'
import { openBatch, swapJoint } from './joint-rows.ts'
import { requestsOf } from './queue.ts'
import type { RemoteRules } from './remote-rules.ts'
import { type FoundRow, swapRows } from './swaps.ts'

/** Visited is a trip that has returned rows. */
export interface Visited {
  readonly batch: Batch
  readonly found: Found
  readonly texts: readonly (string | null)[]
  /** Returns the deadline by the engine's clock, from which on nothing may change. */
  untilUs(): number
  readonly acted: Acted
  failed(request: Request, error: unknown): void
}

/** Unswapped is the requests whose rows the engine has only read. */
export interface Unswapped {
  readonly firsts: readonly Request[]
  /** Decides, swaps the rows, and returns the requests that lost to another writer. */
  swap(): Promise<readonly Request[]>
}

/** isOnlyRead tells whether the engine only reads the rows of these requests. */
export function isOnlyRead(engine: Engine, first: Request): boolean {
  const { set, rows } = first
  if (!rows) return !engine.decides(set as RemoteRules)
  // Only the library records spends that may be taken back.
  const isPending = requestsOf(first).some(({ pending }) => pending !== undefined)
  return isPending || rows.some((row) => !engine.decides(row.set as RemoteRules))
}

/** answerTrip answers the requests that the engine has decided, and returns the others. */
export function answerTrip(engine: Engine, trip: Visited): Unswapped {
  const { joint } = trip.batch
  return joint ? answerJoint(engine, joint, trip) : answerRows(engine, trip)
}

function answerRows(engine: Engine, trip: Visited): Unswapped {
  const { batch, texts, acted, failed } = trip
  const { nowUs, versions } = trip.found
  const read: FoundRow[] = []
  for (const [i, first] of batch.firsts.entries()) {
    if (!isOnlyRead(engine, first)) {
      const row = openRow((first.set as RemoteRules).row, texts[i], nowUs)
      if (!row.isCarried) {
        actAll(first, nowUs, acted)
        continue
      }
    }
    const [name, text, version] = [batch.names[i], texts[i], versions?.[i]]
    read.push({ first, name, text, version, nowUs, untilUs: trip.untilUs(), acted })
  }
  return {
    firsts: read.map(({ first }) => first),
    swap: () => swapRows(read, engine, failed),
  }
}

/** Does the same for keys with fields. The engine skips requests on rows that it cannot decode. */
function answerJoint(engine: Engine, joint: JointBatch, trip: Visited): Unswapped {
  const { batch, found, texts, acted, failed } = trip
  const { rowsOf, opened } = openBatch(joint, texts, found.nowUs)
  const todo: number[] = []
  /** Rows of requests that the engine has skipped. It also skips later requests on these rows. */
  const left = new Set<number>()
  for (const [i, first] of batch.firsts.entries()) {
    const places = joint.places[i]
    if (isOnlyRead(engine, first)) {
      todo.push(i)
      continue
    }
    const rows = places.some((place) => left.has(place)) ? [] : rowsOf(i)
    if (rows.length > 0 && !rows.some(({ isCarried }) => isCarried)) {
      actJointAll(first, rows, found.nowUs, acted)
      continue
    }
    todo.push(i)
    for (const place of places) left.add(place)
  }
  const untilUs = trip.untilUs()
  const firsts = todo.map((i) => batch.firsts[i])
  // Other requests of this trip have changed these rows since they were read.
  const isStale = todo.some((i) => joint.places[i].some((place) => opened[place]?.isChanged))
  return {
    firsts,
    swap: async () =>
      isStale
        ? firsts
        : swapJoint({ batch, joint, found, texts, todo, untilUs, acted }, engine, failed),
  }
}
