import type { Batch, JointBatch } from '../remote/engine.ts'
import { requestsOf } from '../remote/queue.ts'
import type { RemoteRules } from '../remote/remote-rules.ts'
import type { Request } from '../store.ts'
import { DECIDE } from './decide-lua.ts'
import { jointText, wordOf } from './request-words.ts'
import { CLOCK_LINE, EXPIRY } from './script.ts'
import { isTwinned, jsonOf } from './told-rules.ts'
import { twinsText } from './twins.ts'

/** decideScript is the script with the twins of these algorithms. */
export function decideScript(twins: ReadonlyMap<string, string>, clockLine = CLOCK_LINE): string {
  return `${clockLine}\n${EXPIRY}${twinsText(twins)}${DECIDE}`
}

/** decideArgs are what the script takes: how many keys, the keys, and the words of ARGV. */
export function decideArgs(batch: Batch, untilUs: number): string[] {
  const { firsts, names, joint } = batch
  const sets: RemoteRules[] = []
  const numberOf = (set: RemoteRules) => sets.indexOf(set) + 1 || sets.push(set)
  const words = joint
    ? jointWords(firsts, joint, numberOf)
    : firsts.map((first) => {
        const set = first.set as RemoteRules
        return isTwinned(set) ? wordOf(numberOf(set), first) : '-'
      })
  const json = `[${sets.map((set) => jsonOf(set, untilUs)).join()}]`
  return [String(names.length), ...names, String(untilUs), json, ...words]
}

/** A word for each row, and one for the requests about each key with fields. */
function jointWords(
  firsts: readonly Request[],
  { places, sets }: JointBatch,
  numberOf: (set: RemoteRules) => number,
): string[] {
  const words = sets.map((set) => (isTwinned(set) ? `${numberOf(set)}@` : '-'))
  for (const [i, first] of firsts.entries()) {
    const requests = requestsOf(first)
    if (requests.some(({ pending }) => pending !== undefined)) continue
    if (!places[i].every((place) => isTwinned(sets[place]))) continue
    const rows = places[i].map((place) => place + 1)
    words.push(`${rows.join()}@${requests.map(jointText).join('')}`)
  }
  return words
}
