import { createLimiter, type Rule, tokenBucket } from 'sluice'
import { playStream, randomSteps, ruleMakers, seededRandom } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { createRedisStandIn } from '../packages/server/src/simulate/fleet/redis-stand-in.ts'
import { openRedis } from '../packages/sluice/src/stores/redis/redis.ts'
import { useRedis } from './redis/fixture.ts'
import { TEST_CLOCK_LINE, timedStore, type Wire } from './redis/timed.ts'

const redis = useRedis()

/** The algorithms whose states are not lists. */
const names = Object.keys(ruleMakers).filter((name) => name !== 'sliding-window-log')

/** A wire to a real server that plays every command on the stand-in as well, and compares answers. */
function comparing(nowUs: () => number) {
  const standIn = createRedisStandIn(nowUs)
  const seen = new Map<string, number>()
  const wire: Wire = async (send, command, args) => {
    const mine = standIn.call(command, args)
    const real = await send(command, args).catch((error: Error) => error)
    const isRegister = command === 'EVAL' && args[0].includes('HEXISTS')
    expect(told(mine, isRegister), `${command} ${args.slice(1)}`).toEqual(told(real, isRegister))
    const kind = real instanceof Error ? 'NOSCRIPT' : isRegister ? 'register' : command
    seen.set(kind, (seen.get(kind) ?? 0) + 1)
    if (real instanceof Error) throw real
    return real
  }
  return { wire, seen }
}

/** What is compared: the register reads the real clock, and servers word errors as they like. */
function told(answer: unknown, isRegister: boolean): unknown {
  if (answer instanceof Error) return answer.message.split(' ')[0]
  return isRegister ? (answer as unknown[]).slice(0, -1) : answer
}

describe('the stand-in for Redis answers as a real server does', () => {
  it.each(names)('to random streams of every verb with %s, and while limits change', async (name) => {
    const random = seededRandom(7)
    let admitted = 0
    let refused = 0
    for (let i = 0; i < 12; i += 1) {
      await redis.client.script('FLUSH')
      const made = timedStore(redis.client, (send, command, args) => wire(send, command, args))
      const { wire, seen } = comparing(() => made.clock.nowUs())
      const rule = ruleMakers[name](random)
      const tiers: Rule[][] = [[rule], [ruleMakers[name](random)]]
      if (i % 3 === 0) tiers[0].push(ruleMakers[random.pick(names)](random, 'second'))
      const tally = await playStream(made, tiers, randomSteps(random, 150))
      admitted += tally.admitted
      refused += tally.refused
      for (const kind of ['NOSCRIPT', 'register', 'EVAL', 'EVALSHA']) {
        expect(seen.get(kind), kind).toBeGreaterThan(0)
      }
    }
    expect(Math.min(admitted, refused)).toBeGreaterThan(200)
  })
})
