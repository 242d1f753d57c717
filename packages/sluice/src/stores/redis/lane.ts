import { soon } from '../../failure/soon.ts'
import {
  type Batch,
  type Call,
  checkArgs,
  isPlain,
  onlyCheck,
  readView,
  scriptArgs,
  settleCalls,
  type Trip,
} from './batch.ts'
import type { RedisTime } from './redis-time.ts'
import type { RedisRules } from './rule-set.ts'

/** The most decisions of one trip. */
const MOST = 128

/** So many calls are worth two trips, after so many trips in a row that had several. */
const WORTH_TWO = 24
const STEADY = 8

/**
 * Calls wait for a trip under way only if it takes less than this part of their time: they would
 * be late after it and their own.
 */
const WORTH_WAITING = 1 / 3

/** The most names of one trip: Lua cannot pass on more than some thousand values at once. */
const MOST_NAMES = 4_000

/** Lane sends the calls of one slot, in order. */
export interface Lane {
  /** Gets in line. */
  add(call: Call): void
  /** Sends what is in line, if it is time. */
  go(nowMs: number, timeoutMs: number): void
}

export interface LaneParts {
  /** Runs the script with `scriptArgs` of one slot. */
  run(args: string[]): Promise<readonly unknown[]>
  /** Runs the script for one check by the set's only rule, with `checkArgs`. */
  runCheck(set: RedisRules, args: string[]): Promise<readonly unknown[]>
  readonly time: RedisTime
  /** The name of a key's row. */
  nameOf(key: string): string
  /**
   * Carries over a row that was written for other limits. Answers the calls, or gives false if they
   * have to be made again.
   */
  carry(first: Call, text: string, trip: Trip): Promise<boolean>
}

/**
 * createLane sends a call at once when none is under way, and gathers what comes while one is: up
 * to 128, which then go together.
 */
export function createLane({ run, runCheck, time, nameOf, carry }: LaneParts): Lane {
  let queue: Call[] = []
  let underWay = 0
  let lastSentMs = 0
  /** The shortest trip so far: how far away Redis is, however busy it is now. */
  let shortestMs = Number.POSITIVE_INFINITY
  /** Goes up when trips are given up that may never end. */
  let epoch = 0
  let isDue = false
  /** Trips in a row that had several calls. */
  let sharedTrips = 0
  let carrying = 0
  let carried: { readonly turn: number; readonly first: Call }[] = []
  let turns = 0

  function go(nowMs: number, timeoutMs: number): void {
    if (underWay > 0 && nowMs - lastSentMs > timeoutMs) {
      epoch += 1
      underWay = 0
    }
    const isFar = Number.isFinite(shortestMs) && shortestMs > WORTH_WAITING * timeoutMs
    if ((underWay === 0 && !isDue) || isFar) flush(1)
    else flush(MOST)
  }

  /** Sends what is in line, as long as there is that much. */
  function flush(least: number): void {
    const most = isBusy() ? Math.ceil(queue.length / 2) : MOST
    while (queue.length >= least) {
      const batch = next(performance.now(), most)
      if (batch.firsts.length > 0) void send(batch)
    }
  }

  /**
   * Under a steady load that does not fill trips, calls go in two, so that Redis works on one while
   * the other's callers are served.
   */
  function isBusy(): boolean {
    return (
      underWay === 0 && sharedTrips >= STEADY && queue.length >= WORTH_TWO && queue.length < MOST
    )
  }

  /** The next calls for one trip: about one key only with the same rules, and none that are late. */
  function next(nowMs: number, most: number): Batch {
    if (queue.length === 1) {
      const [call] = queue
      if (call.dueMs >= nowMs || call.putOff?.()) {
        queue = []
        return { firsts: [call], untilMs: call.dueMs }
      }
    }
    const lasts = new Map<string, Call>()
    const firsts: Call[] = []
    let untilMs = Number.POSITIVE_INFINITY
    let taken = 0
    let names = 0
    for (; taken < queue.length && taken < most; taken += 1) {
      const call = queue[taken]
      const last = lasts.get(call.key)
      if (last && last.set !== call.set) break
      names += last ? 0 : 1
      if (names > MOST_NAMES && firsts.length > 0) break
      if (call.dueMs < nowMs && !call.putOff?.()) {
        call.reject(new Error('Redis was too busy to be asked in time.'))
        continue
      }
      if (last) last.next = call
      else firsts.push(call)
      lasts.set(call.key, call)
      if (call.dueMs < untilMs) untilMs = call.dueMs
    }
    queue = taken === queue.length ? [] : queue.slice(taken)
    return { firsts, untilMs }
  }

  async function send(batch: Batch): Promise<void> {
    const sentMs = performance.now()
    const sentIn = epoch
    const isShared = batch.firsts.length > 1 || batch.firsts[0].next !== undefined
    sharedTrips = isShared ? sharedTrips + 1 : 0
    lastSentMs = sentMs
    underWay += 1
    try {
      const reply = await ask(batch)
      shortestMs = Math.min(shortestMs, performance.now() - sentMs)
      const nowUs = Number(reply[reply.length - 1])
      time.note(nowUs, sentMs)
      if (!isAnswer(reply, batch)) throw new Error('Redis gave an answer that makes no sense.')
      if (reply.length === 1) again(batch.firsts)
      else settle(batch, reply, { nowUs, sentMs })
    } catch (error) {
      for (const call of callsOf(batch.firsts)) call.reject(error)
    } finally {
      if (sentIn === epoch) underWay -= 1
      if (underWay === 0 && (queue.length > 0 || isShared)) flushSoon()
    }
  }

  /** A row that the script for one check leaves alone is one for the other script. */
  async function ask(batch: Batch): Promise<readonly unknown[]> {
    const deadlineUs = time.at(batch.untilMs)
    const check = onlyCheck(batch)
    if (check) {
      const reply = await runCheck(check.set, checkArgs(check, deadlineUs, nameOf))
      if (reply.length !== 2 || isPlain(reply[0] as string | null, check.set)) return reply
    }
    return run(scriptArgs(batch, deadlineUs, nameOf))
  }

  /** Sends once those who were just answered have had the time to ask again. */
  function flushSoon(): void {
    if (isDue) return
    isDue = true
    soon(() => {
      isDue = false
      flush(1)
    })
  }

  function settle({ firsts }: Batch, reply: readonly unknown[], trip: Trip): void {
    for (const [i, first] of firsts.entries()) {
      const text = reply[i] as string | null
      const view = readView(first, text)
      if (view) settleCalls(first, view, trip)
      else void carryOver(first, text!, trip)
    }
  }

  /** Calls whose states are carried over wait for each other, and go on in the order they came. */
  async function carryOver(first: Call, text: string, trip: Trip) {
    carrying += 1
    turns += 1
    const turn = turns
    try {
      if (!(await carry(first, text, trip))) carried.push({ turn, first })
    } catch (error) {
      for (const call of callsOf([first])) call.reject(error)
    } finally {
      carrying -= 1
      if (carrying === 0) goOn()
    }
  }

  function goOn(): void {
    carried.sort((a, b) => a.turn - b.turn)
    again(carried.map(({ first }) => first))
    carried = []
  }

  /** Calls that did nothing, because they came too late or met other limits, go first. */
  function again(firsts: readonly Call[]): void {
    const calls = callsOf(firsts)
    if (calls.length === 0) return
    for (const call of calls) call.next = undefined
    queue = [...calls, ...queue]
    flushSoon()
  }

  return { add: (call) => void queue.push(call), go }
}

/** An answer has a value for each key, and the instant; or that alone. */
function isAnswer(reply: unknown, { firsts }: Batch): reply is readonly unknown[] {
  if (!Array.isArray(reply) || !(Number(reply[reply.length - 1]) > 0)) return false
  return reply.length === 1 || reply.length === firsts.length + 1
}

/** callsOf are all calls, of all keys. */
function callsOf(firsts: readonly Call[]): Call[] {
  const calls: Call[] = []
  for (const first of firsts) {
    for (let call: Call | undefined = first; call; call = call.next) calls.push(call)
  }
  return calls
}
