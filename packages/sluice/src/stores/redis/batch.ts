import type { Rule } from '../../core/rule.ts'
import type { RedisRules } from './rule-set.ts'
import { readState } from './state-text.ts'
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

/** Trip is when a call was made: the instant of Redis's clock, and of ours when it was sent. */
export interface Trip {
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
  /** The moment of our clock from which on nobody waits for it. */
  readonly dueMs: number
  /** As that of a `TableRequest`. */
  putOff?(): boolean
  /** The next call of the same trip about this key. */
  next: Call | undefined
  /**
   * It was made. Its figures are in the set, and the states in the view, until this returns; units
   * that were leased are not debited there yet.
   */
  settle(view: View, leased: number, trip: Trip): void
  reject(error: unknown): void
}

/** Batch is the calls of one trip: of each key the first, which has the others behind it. */
export interface Batch {
  readonly firsts: readonly Call[]
  /** The moment of our clock up to which it must have begun. */
  readonly untilMs: number
}

/**
 * oneArgs are what the script for one check takes, if a trip is just that: of a rule whose state is
 * an instant, with a number of figures that fits behind it.
 */
export function oneArgs(
  { firsts }: Batch,
  deadlineUs: number,
  startOf: (key: string) => string,
  idOf: (rule: Rule) => string,
): string[] | undefined {
  const [{ set, key, verb, cost, next }] = firsts
  const rule = set.instant
  if (firsts.length > 1 || next || verb !== 'check' || cost === 0 || !rule) return undefined
  const id = idOf(rule)
  if (id.length > 3) return undefined
  const start = startOf(key)
  const figures = [String(cost * rule.gapUs), String(rule.fullUs)]
  return ['2', start, start + set.endings[0], String(deadlineUs), id, ...figures]
}

/** scriptArgs are what the script takes: how many keys, the keys, and the words of ARGV. */
export function scriptArgs(
  { firsts }: Batch,
  deadlineUs: number,
  startOf: (key: string) => string,
  jsonOf: (set: RedisRules) => string,
): string[] {
  const sets: RedisRules[] = []
  const args: string[] = ['']
  const words = [String(deadlineUs), '']
  for (const first of firsts) {
    const { set, key } = first
    const number = sets.indexOf(set) + 1 || sets.push(set)
    const start = startOf(key)
    args.push(start)
    for (const ending of set.endings) args.push(start + ending)
    words.push(callsWord(number, first))
  }
  args[0] = String(args.length - 1)
  words[1] = `[${sets.map(jsonOf).join()}]`
  for (const word of words) args.push(word)
  return args
}

function callsWord(set: number, first: Call): string {
  if (set === 1 && first.verb === 'check' && !first.next) return String(first.cost)
  let word = `${set}@`
  for (let call: Call | undefined = first; call; call = call.next) {
    const { verb, cost } = call
    if (verb !== 'check') {
      word += `${letters[verb]}${cost}x${call.more}`
      continue
    }
    let times = 1
    while (call.next?.verb === 'check' && call.next.cost === cost) {
      times += 1
      call = call.next
    }
    word += `c${cost}x${times}`
  }
  return word
}

/** readView reads what the script found of a key into the view of its set. */
export function readView({ set }: Call, reply: readonly unknown[], at: number): View {
  const { stateful, view } = set
  const blockUs = Number(reply[at] ?? 0)
  view.blockUs = Number.isSafeInteger(blockUs) ? blockUs : 0
  for (let i = 0; i < stateful.length; i += 1) {
    const text = reply[at + 1 + i] as string | null
    view.states[i] = readState(text, stateful[i], view.states[i])
  }
  return view
}

/** settleCalls answers all calls about a key, by doing with the view what the script did. */
export function settleCalls(first: Call, view: View, trip: Trip): void {
  for (let call: Call | undefined = first; call; call = call.next) {
    const leased = act(call, view, trip.nowUs)
    call.settle(view, leased, trip)
    chargeOn(call.set, view, leased, trip.nowUs)
  }
}

/** Does what a call does, decides if it asks for a decision, and gives the units it leased. */
function act({ verb, set, cost, more }: Call, view: View, nowUs: number): number {
  if (verb === 'check' || verb === 'peek') {
    decideOn(set, view, cost, verb === 'check', nowUs)
  } else if (verb === 'lease') {
    const leased = passes(set, view, cost, nowUs) ? leasable(set, view, cost, more, nowUs) : 0
    decideOn(set, view, cost, true, nowUs)
    return leased
  } else if (verb === 'charge') {
    chargeOn(set, view, cost, nowUs)
  } else if (verb === 'refund') {
    if (more === 0 || nowUs < more) refundOn(set, view, cost, nowUs)
  } else {
    view.blockUs = verb === 'block' ? nowUs + cost : 0
  }
  return 0
}

/** How many units go with a cost: halved until as many again would be left. */
function leasable(
  set: RedisRules,
  view: View,
  cost: number,
  wanted: number,
  nowUs: number,
): number {
  let units = wanted
  while (units > 0 && !passes(set, view, cost + 2 * units, nowUs)) units = Math.floor(units / 2)
  return units
}
