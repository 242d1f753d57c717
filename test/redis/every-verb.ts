import { createLimiter, tokenBucket } from 'sluice'
import { type RedisClient, redisStore } from 'sluice/redis'
import { expect } from 'vitest'

/** tryEveryVerb calls each verb of a limiter on a client, and checks its effect in Redis. */
export async function tryEveryVerb(client: RedisClient): Promise<void> {
  const limiter = createLimiter(tokenBucket({ limit: 10, per: '1d' }), {
    store: redisStore(client),
    name: 'every verb',
    timeoutMs: 5_000,
  })
  const left = async (key: string) => {
    const { source, remaining } = await limiter.peek(key)
    return `${source} ${remaining}`
  }
  expect(await limiter.check('alice', 2)).toMatchObject({ source: 'store', remaining: 8 })
  expect(await limiter.wait('alice', 1)).toMatchObject({ source: 'store', remaining: 7 })
  const many = await limiter.checkMany([{ key: 'alice' }, { key: 'bob', cost: 9 }, { key: 'bob' }])
  expect(many.map(({ source, remaining }) => [source, remaining])).toEqual([
    ['store', 6],
    ['store', 1],
    ['store', 0],
  ])
  expect(await limiter.check('bob')).toMatchObject({ source: 'store', allowed: false })
  await limiter.charge('alice', 7)
  expect(await limiter.check('alice', 0)).toMatchObject({ source: 'store', allowed: false })
  await limiter.refund('alice', 3)
  expect(await left('alice')).toBe('store 2')
  await limiter.block('carol', '1h')
  expect(await left('carol')).toBe('blocked 0')
  expect(await limiter.size()).toBe(3)
  await limiter.unblock('carol')
  expect(await left('carol')).toBe('store 10')
  await limiter.block('bob', '1h')
  await limiter.reset('bob')
  expect(await left('bob')).toBe('store 10')
  const entries = []
  for await (const { key, decision } of limiter.entries()) entries.push([key, decision.remaining])
  expect(entries).toEqual([['alice', 2]])
  await limiter.clear()
  expect(await limiter.size()).toBe(0)
  expect(await left('alice')).toBe('store 10')
  await limiter.close()
}
