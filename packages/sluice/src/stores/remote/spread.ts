import { type Cost, costAt } from '../../core/cost.ts'
import type { Decision } from '../../core/decision.ts'
import type { Held } from '../../core/held.ts'
import { costIn, heldIn, type JointPart, type JointSet, joined } from '../joint/joint-set.ts'
import type { Request, RequestRow, Verb } from '../store.ts'

/** How long a row remembers a pending spend, as a multiple of the request's timeout. */
const REMEMBERED = 4

/** The result of the request's part for one row. */
interface Outcome {
  readonly decision: Decision | undefined
  readonly result: Held | undefined
  readonly error: unknown
}

/**
 * spread executes a request on rows that no single trip can reach, in two phases: it spends from
 * each row, and takes the spends back if one row refuses or does not answer. Each spend has an id,
 * which its row remembers for a while, so that it is taken back at most once; and a deadline, so
 * that it cannot happen after that.
 */
export async function spread(
  request: Request,
  rows: readonly RequestRow[],
  timeoutMs: number,
  send: (request: Request) => void,
): Promise<void> {
  const id = Math.floor(Math.random() * 2 ** 52).toString(36)
  const pending = { id, lifeUs: REMEMBERED * timeoutMs * 1_000 }
  const set = request.set as JointSet
  const isSpend = request.verb === 'check'

  /** Sends the part for `rows[i]`. Never rejects. */
  function ask(i: number, verb: Verb): Promise<Outcome> {
    const part = set.parts[i] as JointPart | undefined
    const isLate = verb === 'takeBack'
    return new Promise((answer) => {
      const one: Request = {
        verb,
        set: part ? aloneOf(part) : set,
        key: rows[i].name,
        fields: request.fields,
        rows: [rows[i]],
        ...partOf(request, part?.places),
        // A look after a refusal holds nothing.
        generation: verb === 'check' ? request.generation : 0,
        isCounted: request.isCounted,
        pending: verb === 'check' || isLate ? pending : undefined,
        // Taking back may take twice the timeout: no caller waits for it.
        dueMs: isLate ? performance.now() + 2 * timeoutMs : request.dueMs,
        putOff: isLate ? undefined : () => request.putOff?.() ?? false,
        untilUs: request.untilUs,
        lease: 0,
        result: undefined,
        ...{ isSent: false, isContended: false, order: 0, next: undefined },
        done: (decision) => answer({ decision, result: one.result, error: undefined }),
        failed(error) {
          if (one.isContended) request.isContended = true
          answer({ decision: undefined, result: undefined, error: error ?? new Error('failed') })
        },
      }
      send(one)
    })
  }

  const askAll = () => Promise.all(rows.map((_, i) => ask(i, request.verb)))

  /** Extends row by row and stops at a hold that has ended, since the permit has then ended. */
  async function extendInTurn(): Promise<Outcome[]> {
    const outcomes: Outcome[] = []
    for (let i = 0; i < rows.length; i += 1) {
      outcomes.push(await ask(i, 'extend'))
      if (outcomes[i].result === undefined) break
    }
    return outcomes
  }

  /** Takes back the spends of admitting rows, and answers with the rows' states after that. */
  async function refuse(outcomes: readonly Outcome[]): Promise<void> {
    const decisions = await Promise.all(
      outcomes.map(async ({ decision }, i) => {
        if (!decision!.allowed) return decision!
        const [, seen] = await Promise.all([ask(i, 'takeBack'), ask(i, 'peek')])
        return seen.decision ?? decision!
      }),
    )
    request.done({ ...joined(set, request.cost, decisions), allowed: false })
  }

  /**
   * Takes back all spends. A row that did not answer may still spend until its deadline: repeats
   * then.
   */
  function giveBackAll(outcomes: readonly Outcome[]): void {
    const leftMs = Math.max(0, request.dueMs - performance.now())
    for (const [i, { error, decision }] of outcomes.entries()) {
      if (error === undefined && !decision!.allowed) continue
      void ask(i, 'takeBack')
      if (error === undefined) continue
      const timer: { unref?(): void } = setTimeout(() => void ask(i, 'takeBack'), leftMs) as never
      timer.unref?.()
    }
  }

  request.isSent = true
  const outcomes = await (request.verb === 'extend' ? extendInTurn() : askAll())
  const failed = outcomes.find(({ error }) => error !== undefined)
  if (failed) {
    if (isSpend) giveBackAll(outcomes)
    request.failed(failed.error)
  } else if (isSpend && !outcomes.every(({ decision }) => decision!.allowed)) {
    await refuse(outcomes)
  } else {
    request.result = resultOf(request, outcomes)
    const decisions = outcomes.flatMap(({ decision }) => decision ?? [])
    request.done(decisions.length > 0 ? joined(set, request.cost, decisions) : undefined)
  }
}

/** Combines the holds of all rows into those of the permit. */
function resultOf({ set, cost, held }: Request, outcomes: readonly Outcome[]): Held | undefined {
  if (outcomes.some(({ result }) => result === undefined)) return undefined
  const holds = new Float64Array(2 * set.rules.length)
  const spentUs: number[] = []
  for (const [i, { places }] of (set as JointSet).parts.entries()) {
    const own = outcomes[i].result!
    for (const [j, place] of places.entries()) {
      holds[2 * place] = own.holds[2 * j]
      holds[2 * place + 1] = own.holds[2 * j + 1]
      spentUs[place] = costAt(own.spentUs, j)
    }
  }
  return { cost: held?.cost ?? cost, spentUs, holds }
}

/** Returns the part of a request for the rules at the given indexes. */
function partOf({ cost, change, held }: Request, places: readonly number[] | undefined) {
  if (!places) return { cost, change, held: undefined }
  return {
    cost: costIn(cost, places) as Cost,
    change: costIn(change, places),
    held: held && heldIn(held, places),
  }
}

const known = new WeakMap<JointPart, JointSet>()

/** Returns the rules of one row as a set of their own. */
function aloneOf(part: JointPart): JointSet {
  let alone = known.get(part)
  if (!alone) {
    const { set } = part
    const places = set.rules.map((_, i) => i)
    alone = { ...set, held: new Float64Array(2 * places.length), parts: [{ ...part, places }] }
    known.set(part, alone)
  }
  return alone
}
