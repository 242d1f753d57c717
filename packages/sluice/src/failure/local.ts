import { RECENT } from '../core/algorithm.ts'
import type { Clock } from '../core/clock.ts'
import { fits } from '../core/cost.ts'
import type { Decision, Source } from '../core/decision.ts'
import type { Held } from '../core/held.ts'
import type { AnyKey } from '../core/key.ts'
import type { Rule } from '../core/rule.ts'
import type { JointSet } from '../stores/joint/joint-set.ts'
import { createJointTable } from '../stores/joint/joint-table.ts'
import { openMemory } from '../stores/memory/memory.ts'
import type { RuleSet, Table } from '../stores/store.ts'
import type { Wanted } from './pending.ts'
import { shareOf } from './share.ts'

/** The retry time of a refusal that the store did not decide. */
const UNKNOWN_WAIT_MS = 1_000

type AnyTable = Table<RuleSet, AnyKey>

/** A request, and the holds that it results in. */
type LocalWanted = Wanted & { result?: Held | undefined }

/** Local executes requests in this process while the store is down. */
export interface Local {
  /** Tells whether a permit came from this fallback. */
  holds(held: Held): boolean
  act(wanted: LocalWanted): Decision | undefined
  clear(): void
}

/** createLocal creates the fallback: in memory, with this node's share of each rule. */
export function createLocal(clock: Clock, fleetSize: number, fields?: readonly string[]): Local {
  let opened: AnyTable | undefined
  const sets = new WeakMap<RuleSet, RuleSet>()
  /** The permits that came from this fallback. */
  const holders = new WeakSet<Held>()

  /** Returns the fields that are null in the keys of this set. */
  function offIn(set: RuleSet): readonly string[] {
    const parts = (set as Partial<JointSet>).parts ?? []
    return fields?.filter((_, i) => !parts.some(({ field }) => field === i)) ?? []
  }

  function setOf(table: AnyTable, set: RuleSet): RuleSet {
    let own = sets.get(set)
    if (!own) {
      const shares = set.rules.map((rule) => shareOf(rule, fleetSize))
      own = table.use(set.penalty ? [...shares, set.penalty] : shares, offIn(set))
      sets.set(set, own)
    }
    return own
  }

  function decide(table: AnyTable, wanted: LocalWanted): Decision {
    const { verb, cost, generation = 0, isCounted = true } = wanted
    const key = wanted.fields ?? wanted.key
    const own = setOf(table, wanted.set)
    if (!fits(cost, own)) return uncounted(own.rules, 'local')
    own.generation = generation
    const spentUs = table.nowUs()
    let decision = table.decide(own, key, cost, verb === 'check', spentUs)
    if (own.penalty && isCounted && verb === 'check' && !decision.allowed) {
      table.punish(own, key, cost, spentUs)
      decision = table.decide(own, key, cost, false, spentUs)
    }
    if (generation > 0 && decision.allowed) {
      wanted.result = { cost, spentUs, holds: own.held.slice() }
      holders.add(wanted.result)
    }
    return decision.source === 'blocked' ? decision : { ...decision, source: 'local' }
  }

  function extend(table: AnyTable, wanted: LocalWanted): void {
    const own = setOf(table, wanted.set)
    const held = wanted.held!
    if (!table.extend(own, wanted.fields ?? wanted.key, held, table.nowUs())) return
    wanted.result = { ...held, holds: own.held.slice() }
    holders.add(wanted.result)
  }

  return {
    holds: (held) => holders.has(held),
    act(wanted) {
      const { verb, set, cost, held, change = 0 } = wanted
      const key = wanted.fields ?? wanted.key
      // Nothing to undo before the first local decision.
      if (!opened && (verb === 'unblock' || verb === 'reset')) return undefined
      opened ??= openLocal(clock, fields)
      const table = opened
      const nowUs = table.nowUs()
      if (verb === 'check' || verb === 'peek') return decide(table, wanted)
      if (verb === 'block') table.block(key, nowUs + (cost as number), nowUs)
      else if (verb === 'unblock') table.unblock(key)
      else if (verb === 'reset') table.reset(key, nowUs)
      else if (verb === 'charge') table.charge(setOf(table, set), key, cost, nowUs)
      else if (verb === 'refund') table.refund(setOf(table, set), key, cost, nowUs, RECENT)
      else if (verb === 'finish') table.finish(setOf(table, set), key, held!, change, nowUs)
      else extend(table, wanted)
      return undefined
    },
    clear: () => opened?.clear(),
  }
}

/** Opens a joint table of these fields; without fields, a single table. */
function openLocal(clock: Clock, fields: readonly string[] | undefined): AnyTable {
  const store = openMemory(1_000_000, clock)
  if (!fields) return store.open('local', [], true) as AnyTable
  const tables = fields.map((field) => store.open(field, [], true))
  return createJointTable(fields, tables) as AnyTable
}

/** uncounted returns a decision that no store made: it admits if `source` is 'open', else refuses. */
export function uncounted(rules: readonly Rule[], source: Source): Decision {
  const allowed = source === 'open'
  const retryAfterMs = allowed ? 0 : UNKNOWN_WAIT_MS
  const each = rules.map(({ name, capacity }) => ({
    rule: name,
    capacity,
    remaining: 0,
    retryAfterMs,
    resetAfterMs: retryAfterMs,
    nextAfterMs: capacity === Number.POSITIVE_INFINITY ? 0 : retryAfterMs,
    delayMs: 0,
  }))
  const capacity = Math.min(...rules.map((rule) => rule.capacity))
  return { ...each[0], capacity, allowed, rules: each, source }
}
