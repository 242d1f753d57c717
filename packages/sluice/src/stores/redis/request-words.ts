import { type Cost, costAt, isSameCost } from '../../core/cost.ts'
import type { JointSet } from '../joint/joint-set.ts'
import type { RemoteRules } from '../remote/remote-rules.ts'
import type { Request, Verb } from '../store.ts'

/** letters encodes verbs for the script. A check that leases is `l`, and one that holds units `a`. */
export const letters: Readonly<Partial<Record<Verb, string>>> = {
  ...{ check: 'c', peek: 'p', charge: 'd', refund: 'r', finish: 'f', extend: 'e' },
  ...{ block: 'b', unblock: 'u', reset: 'x' },
}

/** wordOf encodes the requests for one key as a word for the script. */
export function wordOf(set: number, first: Request): string {
  if (isPlain(first) && typeof first.cost === 'number' && !first.next) {
    return set === 1 ? String(first.cost) : `${set}:${first.cost}`
  }
  let word = `${set}@`
  for (let each: Request | undefined = first; each; each = each.next) {
    if (!isPlain(each)) {
      word += requestText(each)
      continue
    }
    const units = unitsText(each.cost, each)
    let times = 1
    while (isAlike(each, each.next)) {
      times += 1
      each = each.next
    }
    word += `c${units}x${times}`
  }
  return word
}

/** Tells whether a request is a check without lease, hold or penalty. */
function isPlain({ verb, lease, generation, isCounted }: Request): boolean {
  return verb === 'check' && lease === 0 && generation === 0 && isCounted
}

/** Tells whether the next request is the same check. */
function isAlike({ cost }: Request, next: Request | undefined): next is Request {
  return next !== undefined && isPlain(next) && isSameCost(cost, next.cost)
}

/** Encodes a request as a letter and its numbers. */
function requestText(request: Request): string {
  const { verb, cost, lease, generation, isCounted, untilUs, held, change } = request
  if (held) {
    const holds = placesOf(request).map((i) =>
      i < 0 ? '0,0,0' : [costAt(held.cost, i), held.holds[2 * i], held.holds[2 * i + 1]].join(),
    )
    const units = unitsText(verb === 'finish' ? change : 0, request)
    return `${letters[verb]}${units}x${[held.spentUs, ...holds].join()}`
  }
  const units = unitsText(cost, request)
  if (generation > 0) return `${isCounted ? 'a' : 'A'}${units}x${generation}`
  if (verb === 'check' && !isCounted) return `C${units}x1`
  return lease > 0 ? `l${units}x${lease}` : `${letters[verb]}${units}x${untilUs}`
}

/** plannedText encodes a request on the rows with these numbers, for the script's plan. */
export function plannedText(request: Request, rows: readonly number[]): string {
  const { cost, set } = request
  if (!isPlain(request)) return `"${rows.join()}@${requestText(request)}"`
  if (set.penalty) return `"${rows.join()}@c${unitsText(cost, request)}x1"`
  if (typeof cost === 'number') return `${rows.length},${rows.join()},1,${cost}`
  const units = placesOf(request).map((place) => cost[place])
  // Of no rule that keeps a state: a number all the same.
  if (units.length === 0) units.push(0)
  return `${rows.length},${rows.join()},${units.length},${units.join()}`
}

/** Encodes a cost: units for all rules, or for each rule that keeps state. */
function unitsText(cost: Cost, request: Request): string {
  if (typeof cost === 'number') return String(cost)
  return placesOf(request)
    .map((place) => (place < 0 ? 0 : cost[place]))
    .join()
}

/** Lists the indexes of rules that keep state, by row and line; −1 for a penalty. */
function placesOf({ set, rows }: Request): number[] {
  if (!rows) return (set as RemoteRules).lines.map(({ index }) => index)
  return (set as JointSet).parts.flatMap(({ set: own, places }) =>
    (own as RemoteRules).lines.map(({ index }) => (index < 0 ? -1 : places[index])),
  )
}
