import { describe, expect, it, vi } from 'vitest'
import {
  type AsyncStore,
  compactStore,
  createLimiter,
  fixedWindow,
  memoryStore,
  type Store,
  tokenBucket,
} from '../index.ts'
import { redisStore } from '../stores/redis/redis.ts'
import { type RemoteRows, remoteStore } from '../stores/remote/remote.ts'
import { attachSharedMemory, sharedMemoryStore } from '../stores/shared-memory/shared-memory.ts'

const rule = tokenBucket({ limit: 10, per: '1m' })
const inUse = expect.objectContaining({ code: 'SLUICE_STORE_NAME' })

interface Options {
  readonly name?: string
  readonly share?: boolean
}
const on = (store: Store | AsyncStore, options: Options = {}, rules = rule) =>
  createLimiter(rules, { store, ...options } as { store: Store })

const client = () => ({ call: async () => 'never asked' })
const rows = (): RemoteRows => ({
  read: async (names) => ({ texts: names.map(() => null), nowUs: 1 }),
  swap: async () => true,
})

describe.each<{ name: string; make(): Store | AsyncStore }>([
  { name: 'memoryStore', make: memoryStore },
  { name: 'compactStore', make: compactStore },
  { name: 'sharedMemoryStore', make: () => sharedMemoryStore({ maxKeys: 10 }) },
  { name: 'redisStore', make: () => redisStore(client()) },
  { name: 'remoteStore', make: () => remoteStore(rows()) },
])('two limiters on one $name', ({ make }) => {
  it('need different names, with any rules', () => {
    const store = make()
    on(store)
    expect(() => on(store)).toThrow(inUse)
    expect(() => on(store, {}, fixedWindow({ limit: 5, per: '15m' }) as never)).toThrow(inUse)
    expect(() => on(store, { name: 'default' })).toThrow(/the name "default" is in use/)
    on(store, { name: 'login' })
    expect(() => on(store, { name: 'login' })).toThrow(
      /the name "login" is in use on this store, so both would count as one/,
    )
  })

  it('may have one name if both share it', async () => {
    const store = make()
    on(store, { name: 'one', share: true })
    expect(() => on(store, { name: 'one' })).toThrow(inUse)
    await on(store, { name: 'one', share: true }).close()
    expect(() => on(store, { name: 'one' })).toThrow(inUse)
    on(store, { name: 'two' })
    expect(() => on(store, { name: 'two', share: true })).toThrow(inUse)
  })

  it('may use one name one after the other, and keep used units', async () => {
    const store = make()
    for (let i = 0; i < 3; i += 1) {
      const limiter = on(store)
      if (store.kind === 'sync') expect(limiter.check('alice').remaining).toBe(9 - i)
      await limiter.close()
      await limiter.close()
    }
    on(store)
    expect(() => on(store)).toThrow(inUse)
  })

  it('do not take a name that a limiter could not be made with', () => {
    const store = make()
    expect(() => on(store, {}, [] as never)).toThrow()
    expect(() => on(store, { share: 'yes' as never })).toThrow(/share must be true or false/)
    on(store)
  })
})

describe('names', () => {
  it('are taken per client and prefix, whatever the store object', () => {
    const [one, other] = [client(), client()]
    on(redisStore(one))
    expect(() => on(redisStore(one))).toThrow(inUse)
    on(redisStore(other))
    on(redisStore(one, { prefix: 'own' }))
    // Both would have their rows under `sl:login/`.
    on(redisStore(one), { name: 'login' })
    expect(() => on(redisStore(one, { prefix: 'sl:login' }))).toThrow(inUse)
  })

  it('are taken per engine of a remoteStore, and per buffer of shared memory', () => {
    const engine = rows()
    on(remoteStore(engine))
    expect(() => on(remoteStore(engine))).toThrow(inUse)
    const shared = sharedMemoryStore({ maxKeys: 10 })
    on(shared)
    expect(() => on(attachSharedMemory(shared.handle))).toThrow(inUse)
  })

  it('are free on stores of their own', () => {
    createLimiter(rule)
    createLimiter(rule)
    on(memoryStore())
    on(memoryStore())
  })

  it('are known to every copy of the library in the process', async () => {
    vi.resetModules()
    const copy = await import('../index.ts')
    expect(copy.createLimiter).not.toBe(createLimiter)
    const one = client()
    on(redisStore(one))
    const theirs = await import('../stores/redis/redis.ts')
    expect(() => copy.createLimiter(rule, { store: theirs.redisStore(one) })).toThrow(
      expect.objectContaining({ code: 'SLUICE_STORE_NAME' }),
    )
  })
})
