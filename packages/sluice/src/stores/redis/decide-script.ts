import type { Batch, JointBatch } from '../remote/engine.ts'
import { requestsOf } from '../remote/queue.ts'
import type { RemoteRules } from '../remote/remote-rules.ts'
import type { Request } from '../store.ts'
import { DECIDE } from './decide-lua.ts'
import { plannedText, wordOf } from './request-words.ts'
import { CLOCK_LINE, EXPIRY } from './script.ts'
import { isTwinned, jsonOf } from './told-rules.ts'
import { twinsText } from './twins.ts'

/** decideScript returns the script with the twins of these algorithms. */
export function decideScript(twins: ReadonlyMap<string, string>, clockLine = CLOCK_LINE): string {
  return `${clockLine}\n${EXPIRY}${twinsText(twins)}${DECIDE}`
}

/** decideArgs builds the script's arguments: the number of keys, the keys, and ARGV. */
export function decideArgs(batch: Batch, untilUs: number): string[] {
  const { firsts, names, joint } = batch
  const sets: RemoteRules[] = []
  const numberOf = (set: RemoteRules) => sets.indexOf(set) + 1 || sets.push(set)
  const words = joint
    ? [planOf(firsts, joint, numberOf)]
    : firsts.map((first) => {
        const set = first.set as RemoteRules
        return isTwinned(set) ? wordOf(numberOf(set), first) : '-'
      })
  const json = `[${sets.map((set) => jsonOf(set, untilUs)).join()}]`
  return [String(names.length), ...names, String(untilUs), json, ...words]
}

/** Builds the plan: the set of each row and the requests about keys with fields, as a JSON list. */
function planOf(
  firsts: readonly Request[],
  { places, sets }: JointBatch,
  numberOf: (set: RemoteRules) => number,
): string {
  const parts: (number | string)[] = sets.map((set) => (isTwinned(set) ? numberOf(set) : 0))
  for (const [i, first] of firsts.entries()) {
    const requests = requestsOf(first)
    if (requests.some(({ pending }) => pending !== undefined)) continue
    if (!places[i].every((place) => isTwinned(sets[place]))) continue
    const rows = places[i].map((place) => place + 1)
    for (const request of requests) parts.push(plannedText(request, rows))
  }
  return `[${parts.join()}]`
}
