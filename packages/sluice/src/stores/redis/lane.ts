import type { Rule } from '../../rule.ts'
import { soon } from '../../soon.ts'
import {
  type Call,
  type Found,
  type Group,
  groupCalls,
  keysAndWords,
  readGroup,
  settleGroup,
} from './batch.ts'
import type { RedisTime } from './redis-time.ts'
import type { RedisRules } from './rule-set.ts'

/** The most decisions of one trip. */
const MOST = 128

/** Lane sends the calls of one slot, in order. */
export interface Lane {
  ask(call: Call): void
}

export interface LaneParts {
  /** Runs the script on keys of one slot. */
  run(keys: readonly string[], words: readonly string[]): Promise<readonly unknown[]>
  readonly time: RedisTime
  namesOf(key: string, set: RedisRules): string[]
  idOf(rule: Rule): string
  /**
   * Answers the calls of a group whose states were written for other figures, or gives them back
   * once the states are carried over.
   */
  carry(group: Group, found: Found, nowUs: number, sentMs: number): Promise<readonly Call[]>
}

/**
 * createLane sends a call at once when none is under way, and gathers what comes while one is: up
 * to 128, which then go together.
 */
export function createLane({ run, time, namesOf, idOf, carry }: LaneParts): Lane {
  let queue: Call[] = []
  let underWay = 0
  let lastSentMs = 0
  /** Goes up when trips are given up that may never end. */
  let epoch = 0
  let isDue = false

  function ask(call: Call): void {
    queue.push(call)
    if (underWay > 0 && call.askedMs - lastSentMs > call.timeoutMs) {
      epoch += 1
      underWay = 0
    }
    if (underWay === 0 && !isDue) flush(1)
    else if (queue.length >= MOST) flush(MOST)
  }

  /** Sends what is in line, as long as there is that much. */
  function flush(least: number): void {
    while (queue.length >= least) {
      const calls = next()
      if (calls.length > 0) void send(calls)
    }
  }

  /** The next calls for one trip: about one key only with the same rules, and none that are late. */
  function next(): Call[] {
    const nowMs = performance.now()
    const sets = new Map<string, RedisRules>()
    const calls: Call[] = []
    let taken = 0
    for (const call of queue) {
      if (calls.length === MOST || (sets.get(call.key) ?? call.set) !== call.set) break
      taken += 1
      if (nowMs - call.askedMs > call.timeoutMs) {
        call.reject(new Error('Redis was too busy to be asked in time.'))
        continue
      }
      sets.set(call.key, call.set)
      calls.push(call)
    }
    queue = queue.slice(taken)
    return calls
  }

  async function send(calls: readonly Call[]): Promise<void> {
    const sentMs = performance.now()
    const sentIn = epoch
    lastSentMs = sentMs
    underWay += 1
    try {
      const groups = groupCalls(calls, namesOf)
      const { keys, words } = keysAndWords(groups, idOf)
      const untilMs = Math.min(...calls.map(({ askedMs, timeoutMs }) => askedMs + timeoutMs))
      const reply = await run(keys, [String(time.at(untilMs)), ...words])
      const nowUs = Number(reply[reply.length - 1])
      time.note(nowUs, sentMs)
      if (reply.length === 1) return again(calls)
      settle(groups, reply, nowUs, sentMs)
    } catch (error) {
      for (const call of calls) call.reject(error)
    } finally {
      if (sentIn === epoch) underWay -= 1
      if (underWay === 0 && queue.length > 0 && !isDue) flushSoon()
    }
  }

  /** Sends once those who were just answered have had the time to ask again. */
  function flushSoon(): void {
    isDue = true
    soon(() => {
      isDue = false
      flush(1)
    })
  }

  function settle(groups: readonly Group[], reply: readonly unknown[], nowUs: number, ms: number) {
    let at = 0
    for (const group of groups) {
      const found = readGroup(group, reply, at)
      at += group.names.length
      const { stateful } = group.set
      const isOurs = found.ids.every((id, i) => id === '' || id === idOf(stateful[i]))
      if (isOurs || group.calls[0].verb === 'reset') settleGroup(group, found.view, nowUs, ms)
      else void carryOver(group, found, nowUs, ms)
    }
  }

  async function carryOver(group: Group, found: Found, nowUs: number, sentMs: number) {
    try {
      again(await carry(group, found, nowUs, sentMs))
    } catch (error) {
      for (const call of group.calls) call.reject(error)
    }
  }

  /** Calls that did nothing, because they came too late or met other figures, go first. */
  function again(calls: readonly Call[]): void {
    if (calls.length === 0) return
    queue = [...calls, ...queue]
    if (!isDue) flushSoon()
  }

  return { ask }
}
