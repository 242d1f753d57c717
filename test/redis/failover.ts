import { setTimeout } from 'node:timers/promises'
import type { AsyncLimiter, Source } from 'sluice'

/** The pause of a caller between two calls. */
const REST_MS = 12

/** How long calls in flight at the end may take. */
const PATIENCE_MS = 3_000

/** Extra time that a busy machine may take, besides the lag of the event loop. */
const SLACK_MS = 30

/** One call in this many may fail just because the machine is busy. */
const BUSY = 100

/** Asked is one call and its result. Moments are by `performance.now()`. */
export interface Asked {
  readonly key: string
  readonly startMs: number
  /** Infinity until there is an answer. */
  endMs: number
  source?: Source
  error?: unknown
}

/** Callers make calls in loops, one caller per key. */
export interface Callers {
  readonly calls: readonly Asked[]
  stop(): Promise<void>
}

/** startCallers starts a caller for each key. */
export function startCallers(limiter: AsyncLimiter, keys: readonly string[]): Callers {
  const calls: Asked[] = []
  let isOver = false
  const done = Promise.all(
    keys.map(async (key) => {
      while (!isOver) {
        await ask(limiter, key, calls)
        await setTimeout(REST_MS)
      }
    }),
  )
  return {
    calls,
    async stop() {
      isOver = true
      await Promise.race([done, setTimeout(PATIENCE_MS)])
    },
  }
}

async function ask(limiter: AsyncLimiter, key: string, calls: Asked[]): Promise<void> {
  const call: Asked = { key, startMs: performance.now(), endMs: Number.POSITIVE_INFINITY }
  calls.push(call)
  try {
    call.source = (await limiter.check(key)).source
  } catch (error) {
    call.error = error
  }
  call.endMs = performance.now()
}

/** Failover is what callers observed of a failover. */
export interface Failover {
  readonly calls: readonly Asked[]
  /** The source of decisions during the outage. */
  readonly policy: Source
  readonly timeoutMs: number
  /** The longest lag of the event loop. */
  readonly lagMs: number
  /** When the master was lost. */
  readonly lostMs: number
}

/** isBack tells whether the store has decided for each key again after the policy did. */
export function isBack(calls: readonly Asked[], keys: readonly string[]): boolean {
  const last = new Map<string, Source | undefined>()
  for (const { key, endMs, source } of calls) if (endMs < Infinity) last.set(key, source)
  return keys.every((key) => last.get(key) === 'store') && calls.some(isInstead)
}

/** Returns the time from the loss of the master to the last call that the store did not decide. */
function outageMs({ calls, lostMs }: Failover): number {
  return Math.max(0, ...calls.filter(isInstead).map(({ startMs }) => startMs - lostMs))
}

/** complaintsAbout lists what was wrong with a failover for the keys of the lost master. */
export function complaintsAbout(failover: Failover): string[] {
  const { calls, policy, lostMs } = failover
  const complaints = mannersOf(failover)
  const before = calls.filter(({ endMs }) => endMs < lostMs)
  if (before.length === 0 || !isRare(before.filter(isInstead), before)) {
    complaints.push('the store did not decide before it was lost')
  }
  const instead = calls.filter((call) => call.startMs >= lostMs && isInstead(call))
  if (instead.length === 0) complaints.push('no fail-over showed')
  const wrong = instead.find(({ source }) => source !== policy && source !== undefined)
  if (wrong) complaints.push(`${wrong.source} decided, and not ${policy}`)
  const backMs = lostMs + outageMs(failover)
  const after = calls.filter(({ startMs, source }) => startMs > backMs && source === 'store')
  const keys = new Set(after.map(({ key }) => key))
  const missing = calls.find(({ key }) => !keys.has(key))
  if (missing) complaints.push(`the store did not come back for ${missing.key}`)
  return complaints
}

/** complaintsAboutOthers lists what was wrong for keys of the other masters. */
export function complaintsAboutOthers(failover: Failover): string[] {
  const { calls } = failover
  const instead = calls.filter(isInstead)
  const complaints = mannersOf(failover)
  if (!isRare(instead, calls)) {
    complaints.push(`the store did not decide ${instead.length} of ${calls.length} calls`)
  }
  return complaints
}

/** Lists calls that threw or took too long, which must never happen. */
function mannersOf({ calls, timeoutMs, lagMs }: Failover): string[] {
  const complaints: string[] = []
  const thrown = calls.filter(({ error }) => error !== undefined)
  if (thrown.length > 0) complaints.push(`${thrown.length} calls threw, as ${thrown[0].error}`)
  // The event loop may delay the timer once, and its callback once more.
  const mostMs = timeoutMs + 2 * lagMs + SLACK_MS
  const tookMs = Math.max(...calls.map(({ startMs, endMs }) => endMs - startMs))
  if (tookMs > mostMs) complaints.push(`a call took ${tookMs} ms, and not ${mostMs} at most`)
  return complaints
}

function isInstead({ source, endMs }: Asked): boolean {
  return endMs < Infinity && source !== 'store'
}

function isRare(some: readonly Asked[], all: readonly Asked[]): boolean {
  return some.length * BUSY <= all.length
}
