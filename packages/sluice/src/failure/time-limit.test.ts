import { describe, expect, it } from 'vitest'
import { createTimeLimit, type Timed } from './time-limit.ts'

const LIMIT_MS = 50

/** How far the limit may be exceeded, besides two turns of the event loop. */
const SLACK_MS = 30

/** For how long to start calls, and how long to wait for their answers at most. */
const ASKING_MS = 400
const PATIENCE_MS = 3_000

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve))

function block(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

const never = () => new Promise<never>(() => {})

/**
 * Makes calls on an event loop that is blocked for `busyMs` per turn, until all have an answer.
 * Returns the shortest and longest call, and the longest turn.
 */
async function askWhileBusy(busyMs: number, ask: () => Promise<unknown>) {
  const tookMs: number[] = []
  const startMs = performance.now()
  let longestMs = 0
  let asked = 0
  for (let nowMs = startMs; asked > tookMs.length || nowMs < startMs + ASKING_MS; ) {
    const turnMs = nowMs
    for (let i = 0; i < 4 && nowMs < startMs + ASKING_MS; i += 1) {
      asked += 1
      void ask().catch(() => tookMs.push(performance.now() - turnMs))
    }
    block(busyMs)
    await turn()
    nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - turnMs)
    if (nowMs > startMs + PATIENCE_MS) throw new Error(`${asked - tookMs.length} are not answered`)
  }
  return { leastMs: Math.min(...tookMs), mostMs: Math.max(...tookMs), longestMs }
}

describe('a time limit', () => {
  it.each([1, 8, 20, 60])(
    'is exceeded by at most two turns of an event loop that is busy for %i ms per turn',
    async (busyMs) => {
      const { limited } = createTimeLimit(LIMIT_MS)
      const { leastMs, mostMs, longestMs } = await askWhileBusy(busyMs, () => limited(never()))
      expect(leastMs).toBeGreaterThanOrEqual(LIMIT_MS - 1)
      expect(mostMs).toBeLessThan(LIMIT_MS + 2 * longestMs + SLACK_MS)
    },
  )

  it('gives calls that a blocked event loop delayed time to start after it', async () => {
    const { limited } = createTimeLimit(LIMIT_MS)
    const answer = async () => {
      for (let i = 0; i < 5; i += 1) await turn()
      return 'answered'
    }
    const all = [limited(answer()), limited(answer())]
    block(3 * LIMIT_MS)
    expect(await Promise.all(all)).toEqual(['answered', 'answered'])
  })

  it('gives that time only once', async () => {
    const { limited } = createTimeLimit(LIMIT_MS)
    let blocks = 0
    const late = limited(never()).catch(() => blocks)
    while (blocks < 10) {
      block(2 * LIMIT_MS)
      blocks += 1
      await turn()
    }
    expect(await late).toBeLessThanOrEqual(3)
  })

  // The timer is late if another process has the CPU.
  it('does not postpone a call that is about to fail', { retry: 5 }, async () => {
    const limit = createTimeLimit(LIMIT_MS)
    await turn()
    const outcomes: unknown[] = []
    const timed: Timed = {
      dueMs: 0,
      isRunning: false,
      isPutOff: false,
      wasLate: false,
      older: undefined,
      newer: undefined,
      failed: () => void outcomes.push('failed'),
    }
    limit.start(timed, performance.now())
    setImmediate(() => {
      block(30)
      outcomes.push(limit.putOff(timed))
    })
    block(LIMIT_MS + 1)
    await turn()
    await turn()
    expect(outcomes).toEqual([false, 'failed'])
  })
})
