import { describe, expect, it } from 'vitest'
import { redisStore } from '../../stores/redis/redis.ts'
import { sluiceStore } from '../express-rate-limit.ts'

describe('a drop-in store that is closed while its store is away', () => {
  const failing = (call: () => Promise<unknown>) => {
    const store = redisStore({ call })
    const counts = sluiceStore({ store, timeoutMs: 5, onStoreFailure: 'closed' })
    counts.init({ windowMs: 60_000 })
    return counts
  }

  it('rejects with what the store failed by, also when it is asked no more', async () => {
    const cause = new Error('Connection is closed.')
    const counts = failing(() => Promise.reject(cause))
    for (let i = 0; i < 8; i += 1) {
      await expect(counts.increment('alice')).rejects.toMatchObject({
        code: 'SLUICE_STORE_UNAVAILABLE',
        message: expect.stringContaining('Connection is closed.'),
        cause,
      })
    }
  })

  it('says so when the store did not answer', async () => {
    const counts = failing(() => new Promise(() => {}))
    await expect(counts.increment('alice')).rejects.toMatchObject({
      message: expect.stringContaining('did not answer within 5 ms'),
      cause: { code: 'SLUICE_STORE_UNAVAILABLE' },
    })
  })
})
