import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createLimiter, fixedWindow } from 'sluice'
import { manualClock, storeSuite } from 'sluice/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { memcachedStore } from '../examples/memcached/memcached-store.mjs'
import { type MemcachedServer, startMemcached } from './memcached/server.ts'
import { buildLibrary } from './threads/crew.ts'

let server: MemcachedServer
let made = 0

beforeAll(async () => {
  buildLibrary()
  server = await startMemcached()
}, 120_000)
afterAll(() => server?.stop())

/**
 * Creates a store with its own rows, in the future: memcached would drop rows that expired in the
 * past.
 */
function makeStore() {
  made += 1
  const clock = manualClock(Date.UTC(2035, 0) * 1_000)
  return { clock, store: memcachedStore(server, { prefix: `test-${made}`, clock }) }
}

describe('a store for memcached, in less than a hundred lines,', () => {
  for (const { name, run } of storeSuite(makeStore, {
    steps: 2_000,
    evicts: false,
    clears: false,
    fields: 'in turn',
  })) {
    it(name, run)
  }

  it('refuses to be cleared', async () => {
    const { store } = makeStore()
    const limiter = createLimiter(fixedWindow({ limit: 1, per: '1s' }), { store })
    await expect(limiter.clear()).rejects.toMatchObject({ code: 'SLUICE_NOT_LISTABLE' })
  })

  it('decides locally while the server is down, and recovers when it is back', async () => {
    const { port, stop } = await startMemcached()
    const limiter = createLimiter(fixedWindow({ limit: 5, per: '1d' }), {
      store: memcachedStore({ port }),
      timeoutMs: 1_000,
    })
    expect((await limiter.check('alice')).source).toBe('store')
    await stop()
    expect((await limiter.check('alice')).source).toBe('local')
    await expect(limiter.reset('alice')).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
    })
  })

  it('is exact with eight processes on one key, and starves none of them for a second', async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['examples/memcached/race.mjs'],
      { env: { ...process.env, PORT: String(server.port) } },
    )
    const rows = [...stdout.matchAll(/│ +\d+ +│ +(\d+) +│ +(\d+) +│ +(\d+) +│/g)]
    expect(rows).toHaveLength(8)
    for (const [, admitted, longestMs] of rows) {
      expect(Number(admitted)).toBeGreaterThan(0)
      expect(Number(longestMs)).toBeLessThan(1_000)
    }
    const [, sum, missing] = /(\d+) were admitted, and (\d+) are missing/.exec(stdout)!
    expect(sum).toBe(missing)
    expect(rows.reduce((total, [, , , contended]) => total + Number(contended), 0)).toBeGreaterThan(
      100,
    )
  })
})
