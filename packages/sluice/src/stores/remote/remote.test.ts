import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import {
  concurrency,
  createLimiter,
  defineAlgorithm,
  defineRule,
  fixedWindow,
  gcra,
  type Rule,
  systemClock,
  tokenBucket,
} from '../../index.ts'
import { type ManualClock, manualClock, storeSuite } from '../../testing/index.ts'
import type { AsyncStore } from '../store.ts'
import { type RemoteRows, type RowChange, remoteStore } from './remote.ts'

/** RowMap is an in-process engine: rows by name, each with a version number. */
interface RowMap {
  readonly rows: Map<string, { readonly text: string; readonly version: number }>
  readonly engine: Required<RemoteRows>
}

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve))

function rowMap(clock: { nowUs(): number }, declared: Partial<RemoteRows> = {}): RowMap {
  const rows = new Map<string, { text: string; version: number }>()
  let versions = 0
  const isSame = ({ name, version }: RowChange) => (rows.get(name)?.version ?? 0) === version
  const engine: Required<RemoteRows> = {
    atomic: 'all',
    time: 'engine',
    async read(names) {
      await turn()
      const found = names.map((name) => rows.get(name))
      return {
        texts: found.map((row) => row?.text ?? null),
        versions: found.map((row) => row?.version ?? 0),
        nowUs: engine.time === 'caller' ? undefined : clock.nowUs(),
      }
    },
    async swap(changes) {
      await turn()
      if (engine.atomic === 'row' && changes.length > 1) throw new Error('one row at a time')
      if (!changes.every(isSame)) return false
      for (const { name, to } of changes) {
        versions += 1
        if (to === null) rows.delete(name)
        else rows.set(name, { text: to, version: versions })
      }
      return true
    },
    async *list(start) {
      yield [...rows.keys()].filter((name) => name.startsWith(start))
    },
    ...declared,
  }
  return { rows, engine }
}

/** Calls `check` in a loop on every node at once, and returns how many calls each node admitted. */
async function race(stores: readonly AsyncStore[], rule: Rule, calls: number): Promise<number[]> {
  return Promise.all(
    stores.map(async (store) => {
      const limiter = createLimiter(rule, { store, share: true, timeoutMs: 5_000 })
      let admitted = 0
      for (let i = 0; i < calls; i += 1) {
        const { allowed, source } = await limiter.check('alice')
        expect(source).toBe('store')
        if (allowed) admitted += 1
      }
      return admitted
    }),
  )
}

const declarations = [
  { atomic: 'all', time: 'engine' },
  { atomic: 'row', time: 'caller' },
] as const

describe.each(declarations)('remoteStore, atomic $atomic, time $time,', (declared) => {
  const make = () => {
    const clock = manualClock()
    return { clock, store: remoteStore(rowMap(clock, declared).engine, { clock }) }
  }
  const fields = declared.atomic === 'all' || 'in turn'
  for (const { name, run } of storeSuite(make, { steps: 2_000, evicts: false, fields }))
    it(name, run)

  it('admits exactly the limit from many nodes at once', async () => {
    const { engine } = rowMap(systemClock, declared)
    const nodes = Array.from({ length: 8 }, () => remoteStore(engine))
    const admitted = await race(nodes, fixedWindow({ limit: 100, per: '1d' }), 20)
    expect(admitted.reduce((sum, each) => sum + each)).toBe(100)
  })
})

describe('remoteStore', () => {
  const rule = fixedWindow({ limit: 10, per: '1d' })

  it('admits more than the limit if swaps do not compare, which proves that test', async () => {
    const { engine, rows } = rowMap(systemClock)
    const careless: RemoteRows['swap'] = async (changes) => {
      await turn()
      for (const { name, to } of changes) rows.set(name, { text: to!, version: 0 })
      return true
    }
    const nodes = Array.from({ length: 8 }, () => remoteStore({ ...engine, swap: careless }))
    const admitted = await race(nodes, fixedWindow({ limit: 100, per: '1d' }), 20)
    expect(admitted.reduce((sum, each) => sum + each)).toBeGreaterThan(100)
  })

  it('counts rows lost to other nodes, and decides them again', async () => {
    const { engine } = rowMap(systemClock)
    const there = createLimiter(rule, { store: remoteStore(engine) })
    let swaps = 0
    const here = createLimiter(rule, {
      timeoutMs: 5_000,
      store: remoteStore({
        ...engine,
        async swap(changes) {
          swaps += 1
          if (swaps === 1) await there.check('alice', 4)
          return engine.swap(changes)
        },
      }),
    })
    expect((await here.check('alice')).remaining).toBe(5)
    expect(here.stats()).toEqual({ contended: 1, held: 0 })
    expect(there.stats()).toEqual({ contended: 0, held: 0 })
  })

  it('refuses if other nodes win every swap until the deadline, without degrading', async () => {
    const { engine } = rowMap(systemClock)
    const onDegraded = vi.fn()
    const store = remoteStore({ ...engine, swap: async () => false })
    const limiter = createLimiter(rule, { store, timeoutMs: 20, onDegraded })
    for (let i = 0; i < 8; i += 1) {
      expect(await limiter.check('alice')).toMatchObject({ allowed: false, source: 'closed' })
    }
    expect(onDegraded).not.toHaveBeenCalled()
    await expect(limiter.block('alice', '1m')).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
    })
  })

  it('reads and swaps the row of a busy key for 128 calls together', async () => {
    const { engine } = rowMap(systemClock)
    const trips = { read: 0, swap: 0 }
    const counted: RemoteRows = {
      ...engine,
      read(names) {
        trips.read += 1
        return engine.read(names)
      },
      swap(changes) {
        trips.swap += 1
        return engine.swap(changes)
      },
    }
    const limiter = createLimiter(rule, { store: remoteStore(counted), timeoutMs: 5_000 })
    await limiter.peek('alice')
    const calls = Array.from({ length: 120 }, () => limiter.check('alice'))
    const admitted = (await Promise.all(calls)).filter(({ allowed }) => allowed)
    expect(admitted).toHaveLength(10)
    expect(trips.read).toBeLessThanOrEqual(4)
    expect(trips.swap).toBeLessThanOrEqual(2)
  })

  it('keeps the order of a checkMany over many slow trips', async () => {
    const { engine } = rowMap(systemClock)
    const slow: RemoteRows['read'] = async (names) => {
      await sleep(Math.random() * 5)
      return engine.read(names)
    }
    const store = remoteStore({ ...engine, read: slow })
    const limiter = createLimiter(fixedWindow({ limit: 500, per: '1d' }), {
      ...{ store, timeoutMs: 10_000 },
    })
    const requests = Array.from({ length: 600 }, (_, i) => ({ key: i % 3 ? 'alice' : `key ${i}` }))
    const decisions = await limiter.checkMany(requests)
    const ofAlice = decisions.filter((_, i) => requests[i].key === 'alice')
    expect(ofAlice.map(({ remaining }) => remaining)).toEqual(ofAlice.map((_, i) => 499 - i))
  })

  it('decides again once a silent engine is back', async () => {
    const { engine } = rowMap(systemClock)
    let isSilent = true
    const read: RemoteRows['read'] = (names) =>
      isSilent ? new Promise(() => {}) : engine.read(names)
    const limiter = createLimiter(rule, { store: remoteStore({ ...engine, read }), timeoutMs: 20 })
    for (let i = 0; i < 6; i += 1) expect((await limiter.check('alice')).source).toBe('local')
    isSilent = false
    await vi.waitFor(async () => expect((await limiter.check('alice')).source).toBe('store'))
  })

  it('treats a malformed answer as a failure, and says what is wrong', async () => {
    const { engine } = rowMap(systemClock)
    const failures: string[] = []
    for (const wrong of [
      async () => ({ texts: [], nowUs: 1 }),
      async () => ({ texts: [null] }),
    ] satisfies RemoteRows['read'][]) {
      const store = remoteStore({ ...engine, read: wrong })
      const limiter = createLimiter(rule, { store })
      expect((await limiter.check('alice')).source).toBe('local')
      await limiter.reset('alice').catch((error: Error) => failures.push(error.message))
    }
    expect(failures).toEqual([
      'the store failed: read() returned 0 texts for 1 names.',
      "the store failed: read() returned no nowUs. If the engine has no clock, set time: 'caller'.",
    ])
  })

  it('treats a swap that does not say whether it was done as a failure', async () => {
    const { engine } = rowMap(systemClock)
    const told = vi.fn()
    const swap = (async () => {}) as unknown as RemoteRows['swap']
    const store = remoteStore({ ...engine, swap })
    const limiter = createLimiter(rule, { store, onDegraded: (error) => told(error.message) })
    for (let i = 0; i < 6; i += 1) expect((await limiter.check('alice')).source).toBe('local')
    expect(told.mock.calls).toEqual([['the store failed: swap() returned no boolean.']])
  })

  it('ends a permit whose extensions are still under way, and frees all that it holds', async () => {
    const clock = manualClock()
    const store = remoteStore(rowMap(clock).engine, { clock })
    const limiter = createLimiter(concurrency({ limit: 5, hold: '10s' }), {
      store,
      timeoutMs: 5_000,
    })
    for (const end of ['release', 'cancel'] as const) {
      const permit = await limiter.tryAcquire('alice', 3)
      if (!permit.allowed) throw new Error('refused')
      clock.advance(6_000)
      const [first, second] = [permit.extend(), permit.extend()]
      await permit[end]()
      expect(await Promise.all([first, second])).toEqual([true, true])
      expect((await limiter.peek('alice')).remaining).toBe(5)
    }
  })

  it('ends a permit before what is asked next, also without waiting for it', async () => {
    const clock = manualClock()
    const store = remoteStore(rowMap(clock).engine, { clock })
    const rule = concurrency({ limit: 5, hold: '10s' })
    const limiter = createLimiter(rule, { store, timeoutMs: 5_000 })
    for (const isExtended of [false, true]) {
      const permit = await limiter.tryAcquire('alice', 5)
      if (!permit.allowed) throw new Error('refused')
      clock.advance(6_000)
      const extended = isExtended && permit.extend()
      const seen = await limiter.peek('alice', 5)
      expect(seen.retryAfterMs > 9_000).toBe(isExtended)
      await extended
      const ended = permit.release()
      const next = await limiter.tryAcquire('alice', 5)
      expect(next.allowed).toBe(true)
      await ended
      if (next.allowed) await next.release()
    }
  })

  it('never treats a row that it cannot decode as fresh', async () => {
    const { engine, rows } = rowMap(systemClock)
    rows.set('sl/alice', { text: 'of a later version', version: 1 })
    const limiter = createLimiter(rule, { store: remoteStore(engine) })
    expect(await limiter.check('alice')).toMatchObject({ allowed: false, source: 'store' })
  })

  it('carries over used units when the limits change while old nodes still run', async () => {
    const { engine } = rowMap(systemClock)
    const node = (limit: number, name?: string) =>
      createLimiter(tokenBucket({ limit, per: '1d', name }), {
        store: remoteStore(engine),
        share: true,
      })
    const [old, now, other] = [node(10), node(100), node(5, 'other')]
    expect((await old.check('alice', 4)).remaining).toBe(6)
    expect((await now.check('alice', 10)).remaining).toBe(86)
    expect((await other.check('alice')).remaining).toBe(4)
    expect((await old.check('alice')).allowed).toBe(false)
    expect((await now.peek('alice')).remaining).toBe(86)
  })

  it('refuses to list or clear without `list`', async () => {
    const { engine } = rowMap(systemClock)
    const { list: _, ...listless } = engine
    const limiter = createLimiter(rule, { store: remoteStore(listless) })
    const code = 'SLUICE_NOT_LISTABLE'
    await expect(limiter.size()).rejects.toMatchObject({ code })
    await expect(limiter.clear()).rejects.toMatchObject({ code })
  })

  it('lists each key once, and clears rows that are written meanwhile', async () => {
    const { engine, rows } = rowMap(systemClock)
    let isWritten = false
    const doubled: RemoteRows = {
      ...engine,
      async *list(start) {
        yield* engine.list(start)
        yield* engine.list(start)
      },
      async swap(changes) {
        const [{ name, to }] = changes
        if (to === null && !isWritten) {
          isWritten = true
          rows.set(name, { ...rows.get(name)!, version: -1 })
        }
        return engine.swap(changes)
      },
    }
    const limiter = createLimiter(rule, { store: remoteStore(doubled), timeoutMs: 5_000 })
    await limiter.checkMany(Array.from({ length: 300 }, (_, i) => ({ key: `key ${i}` })))
    expect(await limiter.size()).toBe(300)
    await limiter.clear()
    expect([isWritten, rows.size]).toEqual([true, 0])
  })

  it('caches refusals and leases units as redisStore does', async () => {
    const { engine } = rowMap(systemClock)
    const denying = createLimiter(rule, { store: remoteStore(engine, { denyCache: true }) })
    await denying.check('alice', 10)
    const sources = []
    for (let i = 0; i < 2; i += 1) sources.push((await denying.check('alice')).source)
    expect(sources).toEqual(['store', 'cache'])
    const lease = { units: 50, leaseMs: 1_000 }
    const leasing = createLimiter(gcra({ limit: 1_000, per: '1d' }), {
      store: remoteStore(engine, { lease }),
      name: 'leasing',
    })
    const all = new Set<string>()
    for (let i = 0; i < 40; i += 1) all.add((await leasing.check('alice')).source)
    expect(all).toEqual(new Set(['store', 'lease']))
    await leasing.close()
    const exact = createLimiter(gcra({ limit: 1_000, per: '1d' }), {
      store: remoteStore(engine),
      name: 'leasing',
    })
    expect((await exact.peek('alice')).remaining).toBe(960)
  })

  it('supports any algorithm, lists included, and stores nothing for one without cells', async () => {
    const { engine, rows } = rowMap(systemClock)
    const pass = defineAlgorithm({
      ...{ name: 'pass', cells: () => 0, waitUs: () => 0, spend() {}, merge() {} },
      ...{ remaining: () => 1, freshAtUs: () => 0 },
    })
    const limiter = createLimiter(defineRule(pass, { limit: 1, per: '1s' }), {
      store: remoteStore(engine),
    })
    for (let i = 0; i < 3; i += 1) expect((await limiter.check('alice')).source).toBe('store')
    expect(rows.size).toBe(0)
  })

  it('refuses invalid engines and unknown options', () => {
    const { engine } = rowMap(systemClock)
    const code = 'SLUICE_OPTION'
    const made: (() => void)[] = [
      () => remoteStore(undefined as never),
      () => remoteStore({ read: engine.read } as never),
      () => remoteStore({ ...engine, swap: 5 as never }),
      () => remoteStore({ ...engine, atomic: 'rows' as never }),
      () => remoteStore({ ...engine, time: true as never }),
      () => remoteStore({ ...engine, get: engine.read } as never),
      () => remoteStore(engine, { prefix: 'a/b' }),
      () => remoteStore(engine, { prefix: '' }),
      () => remoteStore(engine, { ttl: 5 } as never),
    ]
    for (const make of made) {
      expect(make).toThrow(expect.objectContaining({ code }))
    }
  })
})

describe("the clock of each node, with time: 'caller',", () => {
  it('adds no units when the clock of one node is behind another', async () => {
    const clocks: ManualClock[] = [manualClock(), manualClock()]
    const { engine } = rowMap(systemClock, { time: 'caller' })
    const [ahead, behind] = clocks.map((clock) =>
      createLimiter(tokenBucket({ limit: 10, per: '10s' }), {
        store: remoteStore(engine, { clock }),
        share: true,
        timeoutMs: 5_000,
      }),
    )
    clocks[0].advance(5_000)
    expect((await ahead.check('alice', 10)).allowed).toBe(true)
    expect(await behind.check('alice')).toMatchObject({ allowed: false, retryAfterMs: 6_000 })
    clocks[1].advance(6_000)
    expect((await behind.check('alice')).allowed).toBe(true)
  })
})
