import type { Figures } from '../../decision.ts'
import type { Rule } from '../../rule.ts'
import type { RedisRules } from './rule-set.ts'
import { decodeState } from './state-text.ts'
import { chargeOn, decideOn, passes, refundOn, type View } from './view.ts'

/** The letter of each verb in the script. */
const letters = {
  check: 'c',
  peek: 'p',
  charge: 'd',
  refund: 'r',
  lease: 'l',
  block: 'b',
  unblock: 'u',
  reset: 'x',
}

/** Answer is what became of a call: figures, units that were leased with it, and what was found. */
export interface Answer {
  readonly figures: Figures
  readonly leased: number
  readonly view: View
  /** The instant of Redis's clock, and of ours when the call was sent. */
  readonly nowUs: number
  readonly sentMs: number
}

/** Call is one thing to do about one key, in line for a trip. */
export interface Call {
  readonly verb: keyof typeof letters
  readonly set: RedisRules
  readonly key: string
  /** Units; microseconds for a block. */
  readonly cost: number
  /** Units to lease; the instant from which on nothing is refunded, or 0. */
  readonly more: number
  readonly askedMs: number
  readonly timeoutMs: number
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** Group is the calls of one trip about one key, in order. */
export interface Group {
  readonly set: RedisRules
  readonly names: readonly string[]
  readonly calls: Call[]
}

/** groupCalls puts calls about one key together: its states are read and written once. */
export function groupCalls(
  calls: readonly Call[],
  namesOf: (key: string, set: RedisRules) => string[],
): Group[] {
  const groups = new Map<string, Group>()
  for (const call of calls) {
    const group = groups.get(call.key)
    if (group) group.calls.push(call)
    else groups.set(call.key, { set: call.set, names: namesOf(call.key, call.set), calls: [call] })
  }
  return [...groups.values()]
}

/** keysAndWords are what the script takes, without the deadline. */
export function keysAndWords(groups: readonly Group[], idOf: (rule: Rule) => string) {
  const sets = new Map<RedisRules, number>()
  const keys: string[] = []
  const words: string[] = []
  const rules: string[] = []
  for (const { set, names, calls } of groups) {
    let number = sets.get(set)
    if (number === undefined) {
      number = sets.size + 1
      sets.set(set, number)
      rules.push(String(set.stateful.length))
      for (const rule of set.stateful) rules.push(...ruleWords(rule, idOf(rule)))
    }
    keys.push(...names)
    words.push(callsWord(number, calls))
  }
  return { keys, words: [String(sets.size), ...rules, ...words] }
}

function ruleWords(rule: Rule, id: string): string[] {
  const { algorithm, limit, perUs, capacity, aligned } = rule
  const { gapUs, gapRest, gapParts, fullUs, fullRest } = rule
  const first = [limit, perUs, capacity, Number(aligned), gapUs, gapRest, gapParts]
  const last = [fullUs, fullRest, algorithm.grows ? 0 : algorithm.cells(rule)]
  return [algorithm.name, id, ...first.map(String), ...last.map(String)]
}

function callsWord(set: number, calls: readonly Call[]): string {
  if (set === 1 && calls.length === 1 && calls[0].verb === 'check') return String(calls[0].cost)
  let word = `${set}@`
  for (let i = 0; i < calls.length; i += 1) {
    const { verb, cost, more } = calls[i]
    if (verb !== 'check') {
      word += `${letters[verb]}${cost}x${more}`
      continue
    }
    let times = 1
    while (calls[i + 1]?.verb === 'check' && calls[i + 1].cost === cost) {
      times += 1
      i += 1
    }
    word += `c${cost}x${times}`
  }
  return word
}

/** Found is the answer of the script about one key. */
export interface Found {
  readonly view: View
  /** Of each state the text, and the number of its figures. */
  readonly texts: readonly (string | null)[]
  readonly ids: readonly string[]
}

/** readGroup reads what the script found of a group's key, whose block is at `at`. */
export function readGroup({ set }: Group, reply: readonly unknown[], at: number): Found {
  const block = reply[at]
  const blockUs = block === null ? 0 : Number(block) || 0
  const texts: (string | null)[] = []
  const ids: string[] = []
  const states: Float64Array[] = []
  for (let i = 0; i < set.stateful.length; i += 1) {
    const text = reply[at + 1 + i] as string | null
    const { id, cells } = decodeState(text, set.stateful[i])
    texts.push(text)
    ids.push(id)
    states.push(cells)
  }
  return { view: { set, states, blockUs }, texts, ids }
}

/** settleGroup answers each call, by doing with what was found what the script did with it. */
export function settleGroup({ calls }: Group, view: View, nowUs: number, sentMs: number): void {
  for (const call of calls) {
    const { figures, leased } = settle(call, view, nowUs)
    call.resolve({ figures, leased, view, nowUs, sentMs })
  }
}

function settle(
  { verb, cost, more }: Call,
  view: View,
  nowUs: number,
): { figures: Figures; leased: number } {
  if (verb === 'check') return { figures: decideOn(view, cost, true, nowUs), leased: 0 }
  let leased = 0
  if (verb === 'block') view.blockUs = nowUs + cost
  else if (verb === 'unblock' || verb === 'reset') view.blockUs = 0
  else if (verb === 'charge') chargeOn(view, cost, nowUs)
  else if (verb === 'refund' && (more === 0 || nowUs < more)) refundOn(view, cost, nowUs)
  else if (verb === 'lease' && passes(view, cost, nowUs)) leased = leasable(view, cost, more, nowUs)
  const figures = decideOn(view, cost, verb === 'lease', nowUs)
  chargeOn(view, leased, nowUs)
  return { figures, leased }
}

/** How many units go with a cost: halved until as many again would be left. */
function leasable(view: View, cost: number, wanted: number, nowUs: number): number {
  let units = wanted
  while (units > 0 && !passes(view, cost + 2 * units, nowUs)) units = Math.floor(units / 2)
  return units
}
