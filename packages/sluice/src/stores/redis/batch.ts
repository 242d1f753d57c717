import { fillCells, ownerOf, type RowText, readRow } from '../../rows/codec.ts'
import type { RedisRules } from './rule-set.ts'
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
   * It was made. Its readings are in the set, and the states in the view, until this returns; units
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

/** onlyCheck is the call of a trip that is one check by one rule, which has a script of its own. */
export function onlyCheck({ firsts }: Batch): Call | undefined {
  const [call] = firsts
  if (firsts.length > 1 || call.next || call.verb !== 'check' || call.cost === 0) return undefined
  return call.set.only && call
}

/** checkArgs are what the script for one check takes: how many keys, the key, and the words of ARGV. */
export function checkArgs({ set, key, cost }: Call, deadlineUs: number, nameOf: NameOf): string[] {
  return ['1', nameOf(key), String(deadlineUs), `:${set.labels[0]}`, String(cost), ...set.words]
}

type NameOf = (key: string) => string

/** scriptArgs are what the script takes: how many keys, the keys, and the words of ARGV. */
export function scriptArgs({ firsts }: Batch, deadlineUs: number, nameOf: NameOf): string[] {
  const sets: RedisRules[] = []
  const args: string[] = [String(firsts.length)]
  const words = [String(deadlineUs), '']
  for (const first of firsts) {
    const { set, key } = first
    const number = sets.indexOf(set) + 1 || sets.push(set)
    args.push(nameOf(key))
    words.push(callsWord(number, first))
  }
  words[1] = `[${sets.map(({ json }) => json).join()}]`
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

const FREE: RowText = { blockUs: 0, lines: [] }

/**
 * readView reads a row into the view of a call's set. It gives undefined if the script left the row
 * alone: it cannot be read, or was written for other limits of these rules.
 */
export function readView({ set }: Call, text: string | null): View | undefined {
  const { stateful, labels, view } = set
  const row = text === null ? FREE : (readRow(text) ?? (stateful.length === 0 ? FREE : undefined))
  if (!row || row.lines.some(({ label }) => isOlder(label, set))) return undefined
  view.blockUs = row.blockUs
  for (let i = 0; i < stateful.length; i += 1) {
    const line = row.lines.find(({ label }) => label === labels[i])
    view.states[i] = fillCells(view.states[i], line?.cells ?? [], stateful[i])
  }
  return view
}

/** isOlder tells whether a line was written by one of these rules with other limits. */
export function isOlder(label: string, { labels, owners }: RedisRules): boolean {
  return !labels.includes(label) && owners.length > 0 && owners.includes(ownerOf(label))
}

/** isPlain tells whether the script for one check has decided on this row. */
export function isPlain(text: string | null, { labels }: RedisRules): boolean {
  if (text === null) return true
  if (!text.endsWith(`:${labels[0]}`)) return false
  const cells = PLAIN.exec(text.slice(0, -labels[0].length - 1))?.slice(1) ?? ['x']
  return cells.every((cell) => cell === '' || Number.isSafeInteger(Number.parseInt(cell, 16)))
}

/** The cells that the script for one check reads. */
const PLAIN = /^([\da-f]+) ?([\da-f]*) ?([\da-f]*)$/i

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
