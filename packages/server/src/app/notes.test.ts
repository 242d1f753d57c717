import { pino } from 'pino'
import { createLimiter, tokenBucket } from 'sluice'
import { describe, expect, it } from 'vitest'
import { createNotes } from './notes.ts'
import { openStore } from './open-store.ts'

describe('notes', () => {
  it('log each outage and recovery once, however many limiters notice it', async () => {
    const lines: Record<string, unknown>[] = []
    const logger = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) })
    const notes = createNotes('1', logger, undefined)
    const trouble = { limiter: 'tiers', address: '127.0.0.1:6379', error: 'refused' }
    for (const limiter of ['tiers', 'login', 'search']) notes.degraded({ ...trouble, limiter })
    expect(notes.isDegraded()).toBe(true)
    for (let i = 0; i < 3; i += 1) notes.recovered()
    expect(notes.isDegraded()).toBe(false)
    notes.degraded({ ...trouble, limiter: 'login' })
    expect(lines.map(({ msg, limiter }) => [msg, limiter])).toEqual([
      ['store unavailable', 'tiers'],
      ['store recovered', undefined],
      ['store unavailable', 'login'],
    ])
    expect(lines[0]).toMatchObject(trouble)
    await notes.close()
  })

  it('notice the recovery by a decision of the store', async () => {
    const notes = createNotes('1', pino({ enabled: false }), undefined)
    notes.degraded({ limiter: 'tiers', address: '127.0.0.1:6379', error: 'refused' })
    const local = createLimiter(tokenBucket({ limit: 1, per: '1s' })).check('alice')
    const decided = { route: '', tier: 'free', key: 'alice', cost: 1, shadowed: false, seconds: 0 }
    notes.decided({ ...decided, decision: { ...local, source: 'local' } })
    expect(notes.isDegraded()).toBe(true)
    notes.decided({ ...decided, decision: { ...local, source: 'store' } })
    expect(notes.isDegraded()).toBe(false)
    await notes.close()
  })
})

describe('a store in Redis', () => {
  it('knows why there is no connection, and to which address, without credentials', async () => {
    const settings = {
      ...{ kind: 'redis' as const, urls: ['redis://me:secret@127.0.0.1:1'], prefix: 'slu' },
      ...{ maxKeys: 1, timeoutMs: 50, onFailure: 'local' as const, fleetSize: 1 },
    }
    const store = openStore(settings, () => {})
    await expect.poll(store.trouble).toMatch(/ECONNREFUSED/)
    expect(store.address).toBe('127.0.0.1:1')
    store.close()
  })
})
