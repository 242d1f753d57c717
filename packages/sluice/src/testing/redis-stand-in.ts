// Longer than the other files: it answers one script, whose requests and rows are decoded in one place.

import { createHash } from 'node:crypto'
import { ruleFactories } from '../algorithms/parse-rule.ts'
import { penaltyRule } from '../algorithms/penalty.ts'
import type { Cost } from '../core/cost.ts'
import { SluiceError, shown } from '../core/errors.ts'
import type { Held } from '../core/held.ts'
import { readRule } from '../core/read-rule.ts'
import type { Rule } from '../core/rule.ts'
import { ownerOf, textOf } from '../rows/codec.ts'
import { closeRow, freshRow, type OpenRow, openRow } from '../rows/open-row.ts'
import type { JointSet } from '../stores/joint/joint-set.ts'
import { DECIDE } from '../stores/redis/decide-lua.ts'
import { letters } from '../stores/redis/request-words.ts'
import { HELLO, SWAP } from '../stores/redis/script.ts'
import { actAll } from '../stores/remote/act.ts'
import { actJointAll } from '../stores/remote/joint-act.ts'
import { type RemoteRules, remoteRules } from '../stores/remote/remote-rules.ts'
import type { Request, RequestRow, RuleSet, Verb } from '../stores/store.ts'

/** A row of the server, and when it expires, in milliseconds. */
interface StoredRow {
  readonly text: string
  readonly expiresMs: number
}

/** RedisData is the rows of a server, by name. */
export type RedisData = ReadonlyMap<string, StoredRow>

/**
 * RedisStandIn answers `redisStore` as a Redis server would, with the algorithms' own code and its
 * own clock. It supports only the scripts of `redisStore` and the built-in algorithms without
 * lists. Rows never expire: a fresh row decides like a missing one.
 */
export interface RedisStandIn {
  /** Returns the reply to a command. An error reply is returned as an Error. */
  call(command: string, args: readonly string[]): unknown
  /** Returns its rows, for `restore`. */
  save(): RedisData
  /** Continues from saved rows without any scripts, like a promoted replica. */
  restore(data: RedisData): void
}

type Rows = Map<string, StoredRow>

/** Executes a script on the rows of `keys`. `words` are the script's other arguments. */
type Script = (
  rows: Rows,
  keys: readonly string[],
  words: readonly string[],
  nowUs: number,
) => unknown

/** redisStandIn creates an empty server with a clock in microseconds since 1970. */
export function redisStandIn(nowUs: () => number): RedisStandIn {
  if (typeof nowUs !== 'function') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `redisStandIn: nowUs must be a function, such as that of manualClock(), got ${shown(nowUs)}.`,
    )
  }
  let rows: Rows = new Map()
  const known = new Map<string, Script>()

  function evaluate(script: Script, [, count, ...rest]: readonly string[]): unknown {
    const keys = Number(count)
    return script(rows, rest.slice(0, keys), rest.slice(keys), nowUs())
  }

  return {
    call(command, args) {
      if (command === 'EVALSHA') {
        const script = known.get(args[0])
        return script ? evaluate(script, args) : new Error('NOSCRIPT No matching script.')
      }
      if (command !== 'EVAL') throw new Error(`The stand-in does not know the command ${command}.`)
      const script = scriptOf(args[0])
      known.set(createHash('sha1').update(args[0]).digest('hex'), script)
      return evaluate(script, args)
    },
    save: () => new Map(rows),
    restore(data) {
      rows = new Map(data)
      known.clear()
    },
  }
}

function scriptOf(text: string): Script {
  if (text.endsWith(DECIDE)) return decide
  if (text.endsWith(SWAP)) return swap
  if (text.endsWith(HELLO)) return (_rows, _keys, _words, nowUs) => nowUs
  throw new Error(`The stand-in does not know this script: ${text}`)
}

const decide: Script = (rows, keys, [deadline, json, ...words], nowUs) => {
  const sets = setsOf(json)
  if (isPast(deadline, nowUs) || !sets.every(({ edges }) => isWithin(edges, nowUs))) return [nowUs]
  const values = keys.map((key) => rows.get(key)?.text ?? null)
  const write = (i: number, row: OpenRow) => {
    if (row.isChanged) save(rows, keys[i], closeRow(row, nowUs, true, rows.get(keys[i])?.expiresMs))
  }
  if (words[0].startsWith('[')) {
    const opened = actOnPlan(JSON.parse(words[0]), sets, values, nowUs)
    for (const [i, row] of opened) write(i, row)
  } else {
    for (const [i, word] of words.entries()) {
      if (word === '-') continue
      const row = openRow(setOf(sets, word).row, values[i], nowUs)
      if (row.isCarried) continue
      actAll(requestsIn(word, sets), nowUs)
      write(i, row)
    }
  }
  return [...values, nowUs]
}

type Plan = readonly (number | string)[]

/** Executes the requests of a plan, and returns the rows that it opened by their places. */
function actOnPlan(
  plan: Plan,
  sets: readonly ToldSet[],
  values: readonly (string | null)[],
  nowUs: number,
): ReadonlyMap<number, OpenRow> {
  const own = values.map((_, i) => sets[Number(plan[i]) - 1]?.set)
  const opened = new Map<number, OpenRow>()
  for (const [i, set] of own.entries()) {
    const row = set && openRow(freshRow(set.row), values[i], nowUs)
    if (row && !row.isCarried) opened.set(i, row)
  }
  for (const [places, calls] of requestsOfPlan(plan.slice(values.length))) {
    const rows = places.flatMap((place) => opened.get(place) ?? [])
    if (rows.length < places.length) continue
    const set = jointOf(places.map((place) => own[place]))
    const told = places.flatMap((place) => toldIn(own[place]))
    const named = set.parts.map((part) => ({ name: '', set: part.set }))
    actJointAll(requestsOfSet(calls, set, told, named), rows, nowUs)
  }
  return opened
}

/** Splits the requests of a plan: the places of the rows of each, and the request as a text. */
function* requestsOfPlan(plan: Plan): Iterable<[places: number[], calls: string]> {
  const placesOf = (rows: Plan) => rows.map((row) => Number(row) - 1)
  for (let at = 0; at < plan.length; ) {
    const given = plan[at]
    if (typeof given === 'string') {
      const [rows, calls] = given.split('@')
      yield [placesOf(rows.split(',')), calls]
      at += 1
      continue
    }
    const units = at + 1 + given
    const end = units + 1 + Number(plan[units])
    yield [placesOf(plan.slice(at + 1, units)), `c${plan.slice(units + 1, end).join()}x1`]
    at = end
  }
}

/** Combines the rules of several rows into one set, in the order of the rows. */
function jointOf(sets: readonly RemoteRules[]): JointSet {
  let at = 0
  const parts = sets.map((set, field) => {
    const places = set.rules.map((_, i) => at + i)
    at += places.length
    return { field, set, places }
  })
  const rules = sets.flatMap((set) => set.rules)
  return {
    ...{ rules, parts, generation: 0, held: new Float64Array(2 * rules.length) },
    penalty: sets.find((set) => set.penalty)?.penalty,
    capacity: Math.min(...rules.map(({ capacity }) => capacity)),
    delays: sets.some((set) => set.delays),
    holds: sets.some((set) => set.holds),
  }
}

/** Tells whether an instant is within the edges of each rule that has some. */
function isWithin(edges: readonly (readonly number[])[], nowUs: number): boolean {
  return edges.every((some) => nowUs >= some[0] && nowUs < some[some.length - 1])
}

const swap: Script = (rows, keys, [deadline, ...words], nowUs) => {
  if (isPast(deadline, nowUs)) return -1
  if (keys.some((key, i) => (rows.get(key)?.text ?? '') !== words[3 * i])) return 0
  for (const [i, key] of keys.entries()) {
    const [text, at] = words.slice(3 * i + 1)
    const least = at.startsWith('+') ? (rows.get(key)?.expiresMs ?? 0) : 0
    save(rows, key, { text, expiresMs: Math.max(Number(at), least) })
  }
  return 1
}

function save(rows: Rows, key: string, row: StoredRow): void {
  if (row.text === '') rows.delete(key)
  else rows.set(key, row)
}

function isPast(deadline: string, nowUs: number): boolean {
  return Number(deadline) > 0 && nowUs > Number(deadline)
}

/** Returns the rules of a word of the script. The default is the first set. */
function setOf(sets: readonly ToldSet[], word: string): RemoteRules {
  return sets[/[@:]/.test(word) ? Number.parseInt(word, 10) - 1 : 0].set
}

const verbs = Object.fromEntries(
  Object.entries(letters).map(([verb, letter]) => [letter, verb as Verb]),
)

/** Decodes the requests of a word of the script, each linked to the next one. */
function requestsIn(word: string, sets: readonly ToldSet[]): Request {
  const set = setOf(sets, word)
  const calls = word.includes('@') ? word : `c${word.split(':').at(-1)}x1`
  return requestsOfSet(calls, set, toldIn(set))
}

/** Tells for each line of a row whether its rule is no penalty, which decisions leave out. */
function toldIn({ lines }: RemoteRules): boolean[] {
  return lines.map(({ index }) => index >= 0)
}

function requestsOfSet(
  calls: string,
  set: RuleSet,
  told: readonly boolean[],
  rows?: readonly RequestRow[],
): Request {
  let first: Request | undefined
  for (const [, letter, units, more] of [
    ...calls.matchAll(/([a-zA-Z])([\d,-]+)x([\d,]+)/g),
  ].reverse()) {
    const numbers = more.split(',').map(Number)
    const times = letter === 'c' ? numbers[0] : 1
    for (let i = 0; i < times; i += 1) {
      first = requestFor(set, rows, letter, costOf(units, told), toldNumbers(numbers, told), first)
    }
  }
  return first!
}

function costOf(text: string, told: readonly boolean[]): Cost {
  const units = text.split(',').map(Number)
  if (units.length === 1) return units[0]
  const own = units.filter((_, i) => told[i])
  return own.length > 1 ? own : own[0]
}

/** Drops a penalty's numbers from those of a permit: an instant, and three per line. */
function toldNumbers(numbers: readonly number[], told: readonly boolean[]): readonly number[] {
  if (numbers.length === 1) return numbers
  return numbers.filter((_, i) => i === 0 || told[Math.floor((i - 1) / 3)])
}

function requestFor(
  set: RuleSet,
  rows: readonly RequestRow[] | undefined,
  letter: string,
  units: Cost,
  more: readonly number[],
  next: Request | undefined,
): Request {
  const verb = 'laAC'.includes(letter) ? 'check' : verbs[letter]
  return {
    ...{ verb, set, key: '', cost: units, dueMs: 0, done() {}, failed() {}, next },
    generation: 'aA'.includes(letter) ? more[0] : 0,
    isCounted: letter === letter.toLowerCase(),
    held: letter === 'f' || letter === 'e' ? heldOf(more) : undefined,
    change: units,
    result: undefined,
    pending: undefined,
    lease: letter === 'l' ? more[0] : 0,
    untilUs: verb === 'refund' ? more[0] : 0,
    isContended: false,
    isSent: true,
    fields: undefined,
    rows,
    order: 0,
  }
}

/** Decodes the permit in a call: its instant; then units, generation and slot of each rule. */
function heldOf([spentUs, ...holds]: readonly number[]): Held {
  const rules = holds.length / 3
  return {
    cost: Array.from({ length: rules }, (_, i) => holds[3 * i]),
    spentUs,
    holds: Float64Array.from({ length: 2 * rules }, (_, i) => holds[3 * (i >> 1) + 1 + (i & 1)]),
  }
}

/** A rule set in a call, and the edges of its rules that have some. */
interface ToldSet {
  readonly set: RemoteRules
  readonly edges: readonly (readonly number[])[]
}

const decoded = new Map<string, readonly ToldSet[]>()

/** Decodes the rule sets of a call. They are cached, since nodes send the same ones repeatedly. */
function setsOf(json: string): readonly ToldSet[] {
  let sets = decoded.get(json)
  if (!sets) {
    const told = JSON.parse(json) as { rules: { label: string; edges?: number[] }[] }[]
    sets = told.map(({ rules }) => ({
      set: remoteRules(rules.map(({ label }) => ruleOf(label))),
      edges: rules.flatMap(({ edges }) => (edges ? [edges] : [])),
    }))
    decoded.set(json, sets)
  }
  return sets
}

const algorithms = [...ruleFactories, penaltyRule].map(({ algorithm }) => algorithm)

function ruleOf(label: string): Rule {
  const [code, name] = ownerOf(label).split('\t')
  const algorithm = algorithms.find((each) => each.code === code)
  if (!algorithm || algorithm.grows) throw new Error(`The stand-in cannot keep ${label}.`)
  return readRule(`${textOf(label)} ${algorithm.name}`, [algorithm], name || algorithm.name)
}
