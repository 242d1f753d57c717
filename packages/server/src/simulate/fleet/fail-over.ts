import { createLimiter, type Rule } from 'sluice'
import { redisStore } from 'sluice/redis'
import type { RedisData, RedisStandIn } from 'sluice/testing'
import type { Failover } from './fleet-setup.ts'
import type { FleetKey } from './judge.ts'
import type { VirtualTime } from './virtual-time.ts'

/**
 * failOver makes the server lose its last writes, and records what each key regains: it peeks with
 * the library, without network delay, just before and just after.
 */
export function failOver(
  { atMs, lostMs }: Failover,
  rule: Rule,
  time: VirtualTime,
  server: RedisStandIn,
  keys: readonly FleetKey[],
): void {
  let saved: RedisData = new Map()
  time.at((atMs - lostMs) * 1_000, () => {
    if (lostMs <= atMs) saved = server.save()
  })
  time.at(atMs * 1_000, () => void lose())

  async function lose(): Promise<void> {
    const before = await remaining()
    server.restore(saved)
    const after = await remaining()
    for (const [i, key] of keys.entries()) key.lost += Math.max(0, gained(before[i], after[i]))
  }

  async function remaining(): Promise<number[]> {
    const link = {
      async call(command: string, args: string[]) {
        const answer = server.call(command, args)
        if (answer instanceof Error) throw answer
        return answer
      },
    }
    const limiter = createLimiter(rule, { store: redisStore(link) })
    const found: number[] = []
    // Synchronously one after the other, so that no other task runs in between.
    for (const { name } of keys) found.push((await limiter.peek(name)).remaining)
    return found
  }
}

/** Whole units are rounded down, so the true value may be nearly one unit higher. */
function gained(before: number, after: number): number {
  return after > before ? after - before + 1 : 0
}
