import { setTimeout as sleep } from 'node:timers/promises'
import { calendarWindow, createLimiter, fixedWindow, type Rule, tokenBucket } from 'sluice'
import { playStream, randomSteps, redisStandIn, ruleMakers, seededRandom } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { HELLO } from '../packages/sluice/src/stores/redis/script.ts'
import { useRedis } from './redis/fixture.ts'
import { timedStore, type Wire } from './redis/timed.ts'

const redis = useRedis()

/** The algorithms whose states are not lists. */
const names = Object.keys(ruleMakers).filter((name) => name !== 'sliding-window-log')

/**
 * Creates a wire to a real server that also plays every command on the stand-in, and compares
 * replies.
 */
function comparing(nowUs: () => number) {
  const standIn = redisStandIn(nowUs)
  const seen = new Set<string>()
  const differences: string[] = []
  const wire: Wire = async (send, command, args) => {
    const mine = standIn.call(command, args)
    const real = await send(command, args).catch((error: Error) => error)
    const isHello = command === 'EVAL' && args[0] === HELLO
    const [a, b] = [mine, real].map((answer) => JSON.stringify(isHello || told(answer)))
    // Do not throw here: it would count as a failure of Redis, and local decisions would hide it.
    if (a !== b) differences.push(`${command} ${args.slice(1)}: ${a} and not ${b}`)
    seen.add(real instanceof Error ? 'NOSCRIPT' : command)
    for (const [, verb] of String(args.slice(3)).matchAll(/@?([a-z])\d+x\d+/g)) seen.add(verb)
    if (real instanceof Error) throw real
    return real
  }
  return { wire, seen, differences }
}

/**
 * Returns the comparable part of a reply. Error texts differ, and the first reply has the real
 * time.
 */
function told(answer: unknown): unknown {
  return answer instanceof Error ? answer.message.split(' ')[0] : answer
}

describe('the stand-in for Redis answers as a real server does', () => {
  it.each(names)('to streams of every verb with %s, and while limits change', async (name) => {
    const random = seededRandom(7)
    const all = new Set<string>()
    let admitted = 0
    let refused = 0
    for (let i = 0; i < 12; i += 1) {
      await redis.client.script('FLUSH')
      const made = timedStore(redis.client, (send, command, args) => wire(send, command, args))
      const { wire, seen, differences } = comparing(() => made.clock.nowUs())
      const tiers: Rule[][] = [[ruleMakers[name](random)], [ruleMakers[name](random)]]
      if (i % 3 === 0) tiers[0].push(ruleMakers[random.pick(names)](random, 'second'))
      const tally = await playStream(made, tiers, randomSteps(random, 150))
      expect(differences).toEqual([])
      admitted += tally.admitted
      refused += tally.refused
      for (const kind of seen) all.add(kind)
    }
    expect(Math.min(admitted, refused)).toBeGreaterThan(200)
    expect([...all]).toEqual(expect.arrayContaining(['NOSCRIPT', 'EVAL', 'EVALSHA', ...'pdrbux']))
  })

  it.each([
    tokenBucket({ limit: 300, per: '1s', burst: 100 }),
    fixedWindow({ limit: 300, per: '1s' }),
    calendarWindow({ limit: 300, per: 'month', zone: 'Europe/Berlin', startsOn: 15 }),
  ])('to leases and batched calls with $algorithm.name', async (rule) => {
    await redis.client.script('FLUSH')
    const lease = { units: 40, leaseMs: 100 }
    const made = timedStore(redis.client, (send, command, args) => wire(send, command, args), {
      lease,
    })
    const { wire, seen, differences } = comparing(() => made.clock.nowUs())
    const limiter = createLimiter(rule, { store: made.store, timeoutMs: 5_000 })
    const random = seededRandom(3)
    const counts = { true: 0, false: 0 }
    for (let i = 0; i < 150; i += 1) {
      const asked = Array.from({ length: 1 + random.below(12) }, () =>
        limiter.check(random.pick(['alice', 'bob']), 1 + random.below(3)),
      )
      for (const { allowed } of await Promise.all(asked)) counts[`${allowed}`] += 1
      made.clock.advance(random.below(30_000) / 1_000)
      // Leases go back by the real clock.
      if (i % 20 === 0) await sleep(60)
    }
    await limiter.close()
    expect(differences).toEqual([])
    expect(Math.min(counts.true, counts.false)).toBeGreaterThan(50)
    expect([...seen]).toEqual(expect.arrayContaining(['c', 'l', 'r']))
  })
})

it('a stand-in whose clock is a microsecond behind is noticed', async () => {
  await redis.client.script('FLUSH')
  const made = timedStore(redis.client, (send, command, args) => wire(send, command, args))
  const { wire, differences } = comparing(() => made.clock.nowUs() - 1)
  const rule = fixedWindow({ limit: 3, per: '1s' })
  await createLimiter(rule, { store: made.store, timeoutMs: 5_000 }).check('alice')
  expect(differences).not.toHaveLength(0)
})
