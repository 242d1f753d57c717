import { type Cost, costAt, costsAny } from '../../core/cost.ts'
import type { Decision, RuleDecision } from '../../core/decision.ts'
import type { Held } from '../../core/held.ts'
import { tellRules } from '../../rows/decision-of.ts'
import { finishRow } from '../../rows/hold.ts'
import type { OpenRow } from '../../rows/open-row.ts'
import { admitRow } from '../../rows/row.ts'
import { costIn, heldIn, type JointSet, noteHeld, summed } from '../joint/joint-set.ts'
import type { Request } from '../store.ts'
import { type Acted, changeRow, decideOpen, punishOpen } from './act.ts'
import type { RemoteRules } from './remote-rules.ts'

/**
 * actJointAll executes all requests for one key with fields, in order, on its open rows. There is
 * one row per field that has rules; for block, unblock and reset, one per given field.
 */
export function actJointAll(
  first: Request,
  rows: readonly OpenRow[],
  nowUs: number,
  acted?: Acted,
): void {
  for (let request: Request | undefined = first; request; request = request.next) {
    const { verb } = request
    const isDecision = verb === 'check' || verb === 'peek'
    const decision = isDecision ? check(request, rows, nowUs) : change(request, rows, nowUs)
    acted?.(request, decision, 0, rows)
  }
}

/** Decides over all rows: spends if all rules of all rows admit, else spends nothing. */
function check(request: Request, rows: readonly OpenRow[], nowUs: number): Decision {
  const { verb, cost, generation, pending } = request
  const set = request.set as JointSet
  const isSpend = verb === 'check'
  for (const part of set.parts) part.set.generation = generation
  const waitUs = waitOn(set, rows, cost, nowUs)
  if (waitUs > 0 && isSpend && request.isCounted) punishAll(set, rows, cost, nowUs)
  if (waitUs === 0 && isSpend && costsAny(cost)) {
    for (const [i, { set: own, places }] of set.parts.entries()) {
      admitRow(own as RemoteRules, rows[i], costIn(cost, places), nowUs)
      rows[i].isChanged ||= rows[i].lines.length > 0
    }
    if (set.holds) noteHeld(set)
    if (pending) remember(rows[0], pending, { cost, spentUs: nowUs, holds: set.held }, nowUs)
  }
  const decision = decisionOnAll(set, rows, cost, nowUs)
  const isHeld = generation > 0 && decision.allowed
  request.result = isHeld ? { cost, spentUs: nowUs, holds: set.held.slice() } : undefined
  return decision
}

function waitOn(set: JointSet, rows: readonly OpenRow[], cost: Cost, nowUs: number): number {
  let longest = 0
  for (const [i, { set: own, places }] of set.parts.entries()) {
    const wait = decideOpen(own as RemoteRules, rows[i], costIn(cost, places), false, nowUs)
    if (wait > longest) longest = wait
  }
  return longest
}

/** Counts the refusal for each field whose own rules refuse, unless that field is blocked. */
function punishAll(set: JointSet, rows: readonly OpenRow[], cost: Cost, nowUs: number): void {
  if (set.penalty === undefined) return
  for (const [i, { set: own, places }] of set.parts.entries()) {
    const units = costIn(cost, places)
    if (decideOpen(own as RemoteRules, rows[i], units, false, nowUs) === 0) continue
    punishOpen(own as RemoteRules, rows[i], nowUs)
  }
}

/** Builds the decision from the waits that `waitOn` stored and the rows' present state. */
function decisionOnAll(
  set: JointSet,
  rows: readonly OpenRow[],
  cost: Cost,
  nowUs: number,
): Decision {
  const { parts, rules } = set
  let blockedUs = 0
  let passes = true
  for (let i = 0; i < parts.length; i += 1) {
    blockedUs = Math.max(blockedUs, rows[i].blockUs - nowUs)
    if ((parts[i].set as RemoteRules).waitUs.some((us) => us > 0)) passes = false
  }
  const allowed = passes && blockedUs === 0
  const each: RuleDecision[] = new Array(rules.length)
  for (let i = 0; i < parts.length; i += 1) {
    const { set: own, places } = parts[i]
    tellRules(own as RemoteRules, rows[i], costIn(cost, places), allowed, nowUs, each, places)
  }
  return summed(set, cost, each, allowed, blockedUs)
}

/** Executes any verb but check and peek, on each row. */
function change(request: Request, rows: readonly OpenRow[], nowUs: number): undefined {
  const { cost, held, change } = request
  const set = request.set as JointSet
  if (request.verb === 'takeBack') {
    takeBack(request, rows[0], nowUs)
    return
  }
  let isExtended = request.verb === 'extend'
  for (const [i, row] of rows.entries()) {
    const own = request.rows![i].set as RemoteRules
    const places = set.parts[i]?.places
    const part = places
      ? {
          cost: costIn(cost, places),
          held: held && heldIn(held, places),
          change: costIn(change, places),
        }
      : { cost, held, change }
    // A charge of 0 must not carry a row over to other limits.
    if (request.verb === 'charge' && !costsAny(part.cost)) continue
    const extended = changeRow(request, own, row, part, nowUs)
    if (isExtended && !extended) {
      isExtended = false
      break
    }
  }
  if (isExtended) noteHeld(set)
  request.result = isExtended ? { ...held!, holds: set.held.slice() } : undefined
}

/** decideJointHere decides locally, on copies of rows from an earlier trip. */
export function decideJointHere(
  set: JointSet,
  rows: readonly OpenRow[],
  cost: Cost,
  nowUs: number,
): Decision {
  waitOn(set, rows, cost, nowUs)
  return decisionOnAll(set, rows, cost, nowUs)
}

/** Returns the label of a pending spend. No algorithm has the code `~id`, so nodes copy the line. */
const labelOf = (id: string) => `? ~${id}`

/** Adds a spend to the row as a line: its instant; and units, generation and slot per rule. */
function remember(
  row: OpenRow,
  { id, lifeUs }: { readonly id: string; readonly lifeUs: number },
  { cost, holds }: Held,
  nowUs: number,
): void {
  const cells = [nowUs]
  for (let i = 0; 2 * i < holds.length; i += 1) {
    cells.push(costAt(cost, i), holds[2 * i], holds[2 * i + 1])
  }
  const freshMs = Math.ceil((nowUs + lifeUs) / 1_000)
  row.others = [...row.others, { cells, freshMs, label: labelOf(id) }]
}

/** Undoes a spend that the row remembers, and removes its line, so that it is undone once. */
function takeBack({ set, pending }: Request, row: OpenRow, nowUs: number): void {
  const label = labelOf(pending!.id)
  const line = row.others.find((each) => each.label === label)
  if (!line || line.freshMs! * 1_000 <= nowUs) return
  const [spentUs, ...cells] = line.cells
  const rules = cells.length / 3
  const cost = Array.from({ length: rules }, (_, i) => cells[3 * i])
  const holds = Float64Array.from(
    { length: 2 * rules },
    (_, i) => cells[3 * (i >> 1) + 1 + (i & 1)],
  )
  const change = cost.map((units) => -units)
  const [{ set: own }] = (set as JointSet).parts
  finishRow(own as RemoteRules, row, { cost, spentUs, holds }, change, nowUs)
  row.others = row.others.filter((each) => each !== line)
  row.isChanged = true
}
