import { type Cost, costAt } from '../../core/cost.ts'
import type { Decision } from '../../core/decision.ts'
import type { Held } from '../../core/held.ts'
import { costIn, heldIn, type JointPart, type JointSet, joined } from '../joint/joint-set.ts'
import type { Request, RequestRow, Verb } from '../store.ts'

/** How long a row remembers a spend that may be given back, in time-outs of its request. */
const REMEMBERED = 4

/** What became of one part of a request. */
interface Outcome {
  readonly decision: Decision | undefined
  readonly result: Held | undefined
  readonly error: unknown
}

/**
 * spread does a request about rows that no trip can reach together. It spends from each row, and gives
 * back where one refuses or does not answer. A spend has an id, which its row remembers for a while, so
 * that it is given back at most once, and a deadline, so that it does not come after that.
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

  /** Asks the row with that number. Never rejects. */
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
        generation: request.generation,
        isCounted: request.isCounted,
        pending: verb === 'check' || isLate ? pending : undefined,
        // What is to be given back may take as long again.
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

  /** A hold that has ended ends the permit: the rows behind it are left as they are. */
  async function extendInTurn(): Promise<Outcome[]> {
    const outcomes: Outcome[] = []
    for (let i = 0; i < rows.length; i += 1) {
      outcomes.push(await ask(i, 'extend'))
      if (outcomes[i].result === undefined) break
    }
    return outcomes
  }

  /** Gives back what other rows have spent, and tells them as they are then. */
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

  /** Where a row did not answer, its spend may come until its deadline: it is taken back after that too. */
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

/** What a permit holds in all rows. */
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

/** The part of a request that is for the rules at some places. */
function partOf({ cost, change, held }: Request, places: readonly number[] | undefined) {
  if (!places) return { cost, change, held: undefined }
  return {
    cost: costIn(cost, places) as Cost,
    change: costIn(change, places),
    held: held && heldIn(held, places),
  }
}

const known = new WeakMap<JointPart, JointSet>()

/** The rules of one row as a decision of their own. */
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
