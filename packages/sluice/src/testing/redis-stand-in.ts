import { createHash } from 'node:crypto'
import { ruleFactories } from '../algorithms/parse-rule.ts'
import { readRule } from '../core/read-rule.ts'
import type { Rule } from '../core/rule.ts'
import {
  cellsOf,
  fillCells,
  labelOf,
  ownerOf,
  type RowLine,
  readRow,
  textOf,
  writeRow,
} from '../rows/codec.ts'
import { CHECK } from '../stores/redis/check-script.ts'
import { DECIDE } from '../stores/redis/decide-script.ts'
import { HELLO, SWAP } from '../stores/redis/script.ts'

/** Held is a row of a server, and when it expires, in milliseconds. */
interface Held {
  readonly text: string
  readonly expiresMs: number
}

/** RedisData is what a server holds, by name. */
export type RedisData = ReadonlyMap<string, Held>

/**
 * RedisStandIn answers what `redisStore` sends as a Redis server would, by the algorithms' own code,
 * on a clock of its own. It knows the scripts of `redisStore`, the algorithms of this library that
 * keep no lists, and nothing else. Nothing expires: a row that is fresh decides as none does.
 */
export interface RedisStandIn {
  /** Its answer; an error that Redis would answer with is one. */
  call(command: string, args: readonly string[]): unknown
  /** What it holds now, for `restore`. */
  save(): RedisData
  /** Goes on from there, as a replica that was promoted does: it knows no script. */
  restore(data: RedisData): void
}

type Script = (keys: readonly string[], words: readonly string[], nowUs: number) => unknown

/** A row that is being decided on. */
interface Open {
  blockUs: number
  readonly rules: readonly Rule[]
  readonly states: readonly Float64Array[]
  readonly others: readonly RowLine[]
}

/** redisStandIn makes an empty server, with a clock in microseconds since 1970. */
export function redisStandIn(nowUs: () => number): RedisStandIn {
  let held = new Map<string, Held>()
  const known = new Map<string, Script>()

  function scriptOf(text: string): Script {
    const found = [
      { ends: DECIDE, run: decide },
      { ends: CHECK, run: check },
      { ends: SWAP, run: swap },
      { ends: HELLO, run: (_keys: unknown, _words: unknown, now: number) => now },
    ].find(({ ends }) => text.endsWith(ends))
    if (!found) throw new Error(`The stand-in does not know this script: ${text}`)
    known.set(createHash('sha1').update(text).digest('hex'), found.run)
    return found.run
  }

  function decide(
    keys: readonly string[],
    [deadline, json, ...words]: readonly string[],
    now: number,
  ): unknown[] {
    if (isPast(deadline, now)) return [now]
    const sets = setsOf(json)
    const values = keys.map((key) => held.get(key)?.text ?? null)
    for (const [i, word] of words.entries()) {
      const [which, calls] = word.includes('@') ? word.split('@') : ['1', oneCall(word)]
      const rules = sets[Number(which) - 1]
      let row = openRow(values[i], rules) ?? (rules.length === 0 ? openRow(null, rules) : undefined)
      let isChanged = false
      for (const [, verb, amount, second] of calls.matchAll(/([a-z])(\d+)x(\d+)/g)) {
        if (!row) break
        if (verb === 'x') row = openRow(null, rules)!
        const changed = verb === 'x' || make(row, verb, Number(amount), Number(second), now)
        isChanged ||= changed
      }
      if (row && isChanged) save(keys[i], row, now)
    }
    return [...values, now]
  }

  function check(
    [key]: readonly string[],
    [deadline, label, cost]: readonly string[],
    now: number,
  ): unknown[] {
    if (isPast(deadline, now)) return [now]
    const value = held.get(key)?.text ?? null
    const isPlain = value === null || (/^[\da-f ]+:[^\n]+$/.test(value) && value.endsWith(label))
    const row = isPlain ? openRow(value, [ruleOf(label.slice(1))]) : undefined
    if (row && make(row, 'c', Number(cost), 1, now)) save(key, row, now)
    return [value, now]
  }

  function swap([key]: readonly string[], [from, to, expiresMs]: readonly string[]): number {
    if (held.get(key)?.text !== from) return 0
    if (to === '') held.delete(key)
    else held.set(key, { text: to, expiresMs: Number(expiresMs) })
    return 0
  }

  function save(key: string, { blockUs, rules, states, others }: Open, now: number): void {
    const lines: RowLine[] = []
    for (const [i, rule] of rules.entries()) {
      const freshUs = rule.algorithm.freshAtUs(states[i], 0, rule)
      const freshMs = Math.ceil(freshUs / 1_000)
      const cells = cellsOf(states[i], rule)
      if (freshUs > now) lines.push({ cells, freshMs, label: labelOf(rule) })
    }
    for (const line of others) {
      const freshMs = line.freshMs ?? held.get(key)!.expiresMs
      if (freshMs * 1_000 > now) lines.push({ ...line, freshMs })
    }
    const row = { blockUs: blockUs > now ? blockUs : 0, lines }
    const times = [Math.ceil(row.blockUs / 1_000), ...lines.map(({ freshMs = 0 }) => freshMs)]
    const text = writeRow(row)
    if (text === '') held.delete(key)
    else held.set(key, { text, expiresMs: Math.max(...times) })
  }

  function evaluate(script: Script, [, count, ...rest]: readonly string[]): unknown {
    const keys = Number(count)
    return script(rest.slice(0, keys), rest.slice(keys), nowUs())
  }

  return {
    call(command, args) {
      if (command === 'EVALSHA') {
        const script = known.get(args[0])
        return script ? evaluate(script, args) : new Error('NOSCRIPT No matching script.')
      }
      if (command === 'EVAL') return evaluate(scriptOf(args[0]), args)
      throw new Error(`The stand-in does not know the command ${command}.`)
    },
    save: () => new Map(held),
    restore(data) {
      held = new Map(data)
      known.clear()
    },
  }
}

/** A number is a check of that cost; of none, nothing is written. */
function oneCall(cost: string): string {
  return `${cost === '0' ? 'p' : 'c'}${cost}x1`
}

function isPast(deadline: string, nowUs: number): boolean {
  return Number(deadline) > 0 && nowUs > Number(deadline)
}

/** What a row says to these rules; undefined if the script leaves it alone. */
function openRow(text: string | null, rules: readonly Rule[]): Open | undefined {
  const row = text === null ? { blockUs: 0, lines: [] } : readRow(text)
  if (!row) return undefined
  const labels = rules.map(labelOf)
  const owners = labels.map(ownerOf)
  const others = row.lines.filter(({ label }) => !labels.includes(label))
  if (others.some(({ label }) => owners.includes(ownerOf(label)))) return undefined
  const states = rules.map((rule, i) => {
    const line = row.lines.find(({ label }) => label === labels[i])
    return fillCells(new Float64Array(3), line?.cells ?? [], rule)
  })
  return { blockUs: row.blockUs, rules, states, others }
}

/** Makes one call, and tells whether the row has to be written. */
function make(row: Open, verb: string, units: number, second: number, nowUs: number): boolean {
  if (verb === 'b' || verb === 'u') {
    row.blockUs = verb === 'b' ? nowUs + units : 0
    return true
  }
  if (verb === 'd') spend(row, units, nowUs)
  if (verb === 'r' && (second === 0 || nowUs < second)) refund(row, units, nowUs)
  if (verb === 'd' || verb === 'r') return true
  let made = false
  if (verb === 'c') {
    for (let i = 0; i < second && passes(row, units, nowUs); i += 1) {
      spend(row, units, nowUs)
      made = true
    }
  }
  if (verb === 'l' && passes(row, units, nowUs)) {
    let more = second
    while (more > 0 && !passes(row, units + 2 * more, nowUs)) more = Math.floor(more / 2)
    spend(row, units + more, nowUs)
    made = true
  }
  return made
}

function passes({ rules, states, blockUs }: Open, cost: number, nowUs: number): boolean {
  if (blockUs > nowUs) return false
  return rules.every(
    (rule, i) =>
      cost <= rule.capacity && rule.algorithm.waitUs(states[i], 0, rule, cost, nowUs) <= 0,
  )
}

function spend({ rules, states }: Open, cost: number, nowUs: number): void {
  if (cost === 0) return
  for (const [i, rule] of rules.entries()) rule.algorithm.spend(states[i], 0, rule, cost, nowUs)
}

function refund({ rules, states }: Open, cost: number, nowUs: number): void {
  for (const [i, rule] of rules.entries()) rule.algorithm.refund(states[i], 0, rule, cost, nowUs)
}

const decoded = new Map<string, readonly (readonly Rule[])[]>()

/** The sets of rules in a call; nodes send the same ones again and again. */
function setsOf(json: string): readonly (readonly Rule[])[] {
  let sets = decoded.get(json)
  if (!sets) {
    sets = (JSON.parse(json) as { label: string }[][]).map((set) =>
      set.map(({ label }) => ruleOf(label)),
    )
    decoded.set(json, sets)
  }
  return sets
}

const algorithms = ruleFactories.map(({ algorithm }) => algorithm)
const rules = new Map<string, Rule>()

function ruleOf(label: string): Rule {
  let rule = rules.get(label)
  if (!rule) {
    const [code, name] = ownerOf(label).split('\t')
    const algorithm = algorithms.find((each) => each.code === code)
    if (!algorithm || algorithm.grows) throw new Error(`The stand-in cannot keep ${label}.`)
    rule = readRule(`${textOf(label)} ${algorithm.name}`, [algorithm], name || algorithm.name)
    rules.set(label, rule)
  }
  return rule
}
