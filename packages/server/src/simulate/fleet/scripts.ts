import { defineRule, parseRule, type Rule } from 'sluice'

/** Data is what a server holds: texts by name, and hashes. */
export interface Data {
  readonly texts: Map<string, string>
  readonly hashes: Map<string, Map<string, string>>
}

/** A rule as the script is told of it, and the number of its figures. */
interface Ruled {
  readonly rule: Rule
  readonly id: string
}

/** What a call finds and changes of one key. */
interface Found {
  readonly block: string
  readonly names: readonly string[]
  readonly set: readonly Ruled[]
  /** undefined: one was written for other figures. */
  readonly states: readonly Float64Array[] | undefined
  blockUs: number
  changed: boolean
}

const decoded = new Map<string, readonly (readonly Ruled[])[]>()
const bucket = parseRule('1/1s')

/** runDecide does what the script for any number of calls does. */
export function runDecide(
  data: Data,
  keys: readonly string[],
  [deadline, json, ...words]: readonly string[],
  nowUs: number,
): unknown[] {
  if (isPast(deadline, nowUs)) return [nowUs]
  const sets = setsOf(json)
  const values = keys.map((key) => data.texts.get(key) ?? null)
  let at = 0
  for (const word of words) {
    const [which, calls] = word.includes('@') ? word.split('@') : ['1', oneCall(word)]
    const set = sets[Number(which) - 1]
    const states = set.map((ruled, i) => read(values[at + 1 + i], ruled))
    const found: Found = {
      block: keys[at],
      names: keys.slice(at + 1, at + 1 + set.length),
      set,
      states: states.every((state) => state !== undefined) ? states : undefined,
      blockUs: whole(values[at] ?? '0'),
      changed: false,
    }
    for (const [, verb, amount, second] of calls.matchAll(/([a-z])(\d+)x(\d+)/g)) {
      make(data, found, verb, Number(amount), Number(second), nowUs)
    }
    if (found.changed) save(data, found, nowUs)
    at += 1 + set.length
  }
  return [...values, nowUs]
}

/** runOne does what the script for one check of an instant does: a cost is one unit of its time. */
export function runOne(
  data: Data,
  [block, name]: readonly string[],
  [deadline, id, costUs, fullUs]: readonly string[],
  nowUs: number,
): unknown[] {
  if (isPast(deadline, nowUs)) return [nowUs]
  const values = [data.texts.get(block) ?? null, data.texts.get(name) ?? null, nowUs]
  const rule = { ...bucket, gapUs: Number(costUs), fullUs: Number(fullUs) }
  const state = read(data.texts.get(name) ?? null, { rule, id })
  if (!state || whole(data.texts.get(block) ?? '0') > nowUs) return values
  if (rule.algorithm.take(state, 0, rule, 1, nowUs) === 0) data.texts.set(name, `${state[0]}${id}`)
  return values
}

/** runRegister gives each text of figures a number, the same for everybody. */
export function runRegister(
  { hashes }: Data,
  [name]: readonly string[],
  words: readonly string[],
  nowUs: number,
): number[] {
  const hash = hashes.get(name) ?? new Map<string, string>()
  hashes.set(name, hash)
  const answer: number[] = []
  for (let i = 0; i < words.length; i += 2) {
    let id = Number(words[i + 1])
    const known = hash.get(words[i])
    if (known === undefined) {
      for (let tries = 1; hash.has(`id ${id}`); tries += 1) {
        id = tries < 999 ? (id % 999) + 1 : 999 + tries
      }
      hash.set(words[i], String(id)).set(`id ${id}`, words[i])
    }
    answer.push(known === undefined ? id : Number(known))
  }
  return [...answer, nowUs]
}

/** runSwap replaces states that nobody has changed meanwhile; a fresh one is to expire in 1970. */
export function runSwap(
  { texts }: Data,
  keys: readonly string[],
  words: readonly string[],
): number {
  for (const [i, key] of keys.entries()) {
    const [from, to, expiryMs] = words.slice(3 * i)
    if (texts.get(key) !== from) continue
    if (expiryMs === '1') texts.delete(key)
    else texts.set(key, to)
  }
  return 0
}

/** A number is a check of that cost; of none, nothing is written. */
function oneCall(cost: string): string {
  return `${cost === '0' ? 'p' : 'c'}${cost}x1`
}

function isPast(deadline: string, nowUs: number): boolean {
  return Number(deadline) > 0 && nowUs > Number(deadline)
}

function make(
  { texts }: Data,
  found: Found,
  verb: string,
  units: number,
  second: number,
  nowUs: number,
): void {
  const { set, states, block, names } = found
  if (verb === 'b') {
    found.blockUs = nowUs + units
    texts.set(block, String(found.blockUs))
  } else if (verb === 'u') {
    found.blockUs = 0
    texts.delete(block)
  } else if (verb === 'x') {
    for (const name of [block, ...names]) texts.delete(name)
  } else if (!states || verb === 'p') {
    return
  } else if (verb === 'c') {
    for (let i = 0; i < second; i += 1) {
      if (found.blockUs > nowUs || !passes(set, states, units, nowUs)) break
      spend(set, states, units, nowUs)
      found.changed = true
    }
  } else if (verb === 'l') {
    if (found.blockUs > nowUs || !passes(set, states, units, nowUs)) return
    let more = second
    while (more > 0 && !passes(set, states, units + 2 * more, nowUs)) more = Math.floor(more / 2)
    spend(set, states, units + more, nowUs)
    found.changed = true
  } else if (verb === 'd') {
    spend(set, states, units, nowUs)
    found.changed = true
  } else if (verb === 'r') {
    if (second === 0 || nowUs < second) {
      for (const [i, { rule }] of set.entries()) {
        rule.algorithm.refund(states[i], 0, rule, units, nowUs)
      }
    }
    found.changed = true
  }
}

function passes(
  set: readonly Ruled[],
  states: readonly Float64Array[],
  cost: number,
  nowUs: number,
): boolean {
  return set.every(
    ({ rule }, i) =>
      cost <= rule.capacity && rule.algorithm.waitUs(states[i], 0, rule, cost, nowUs) === 0,
  )
}

function spend(
  set: readonly Ruled[],
  states: readonly Float64Array[],
  cost: number,
  nowUs: number,
): void {
  if (cost === 0) return
  for (const [i, { rule }] of set.entries()) {
    rule.algorithm.spend(states[i], 0, rule, cost, nowUs)
  }
}

function save({ texts }: Data, { set, states, names }: Found, nowUs: number): void {
  for (const [i, { rule, id }] of set.entries()) {
    const state = states![i]
    if (rule.algorithm.freshAtUs(state, 0, rule) <= nowUs) texts.delete(names[i])
    else texts.set(names[i], textOf(state, id))
  }
}

function textOf(state: Float64Array, id: string): string {
  let count = state.length
  while (count > 1 && state[count - 1] === 0) count -= 1
  if (count === 1 && id.length === 3) return `${state[0]}${id}`
  return [id, ...state.subarray(0, count)].join(' ')
}

/** The cells of a state; undefined if it was written for other figures. */
function read(text: string | null, { rule, id }: Ruled): Float64Array | undefined {
  const state = new Float64Array(Math.max(3, rule.algorithm.cells(rule)))
  if (text === null) return state
  if (!text.includes(' ')) {
    if (text.slice(-3) !== id) return undefined
    state[0] = whole(text.slice(0, -3))
    return state
  }
  const [number, ...cells] = text.split(' ')
  if (number !== id) return undefined
  for (const [i, cell] of cells.entries()) state[i] = whole(cell)
  return state
}

function whole(text: string): number {
  const number = Number(text)
  return Number.isSafeInteger(number) && number >= 0 ? number : 0
}

/** The sets of rules in a call; nodes send the same ones again and again. */
function setsOf(json: string): readonly (readonly Ruled[])[] {
  let sets = decoded.get(json)
  if (!sets) {
    sets = (JSON.parse(json) as Figures[][]).map((set) => set.map(ruledOf))
    decoded.set(json, sets)
  }
  return sets
}

interface Figures {
  readonly algorithm: string
  readonly id: string
  readonly limit: number
  readonly per: number
  readonly [param: string]: unknown
}

function ruledOf({ algorithm, id, limit, per, ...more }: Figures): Ruled {
  const like = parseRule(`1/1s ${algorithm}`).algorithm
  if (like.grows) throw new Error(`The stand-in cannot hold the lists of ${algorithm}.`)
  const params = Object.keys(like.params).map((name) => [name, more[name]])
  const rule = defineRule(like, { limit, per: per / 1_000, ...Object.fromEntries(params) })
  return { rule, id }
}
