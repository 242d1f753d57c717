import { describe, expect, it } from 'vitest'
import { concurrency, createLimiter, type Entry, fixedWindow, tokenBucket } from '../../index.ts'
import { manualClock } from '../../testing/index.ts'
import { type RemoteRows, remoteStore } from './remote.ts'

const SECRET = 'a secret of some length'
const rule = tokenBucket({ limit: 10, per: '1m' })

/** An engine in this process, and the texts of its rows by name. */
function engineOf() {
  const rows = new Map<string, string>()
  const clock = manualClock()
  const engine: RemoteRows = {
    time: 'caller',
    read: async (names) => ({ texts: names.map((name) => rows.get(name) ?? null) }),
    async swap(changes) {
      if (changes.some(({ name, from }) => (rows.get(name) ?? null) !== from)) return false
      for (const { name, to } of changes) to === null ? rows.delete(name) : rows.set(name, to)
      return true
    },
    async *list(start) {
      yield [...rows.keys()].filter((name) => name.startsWith(start))
    },
  }
  const storeWith = (hashKeys?: string) => remoteStore({ ...engine }, { clock, hashKeys })
  return { rows, storeWith }
}

describe('hashKeys', () => {
  it('keeps the keys out of the store, and counts each apart on all nodes', async () => {
    const { rows, storeWith } = engineOf()
    const nodes = [SECRET, SECRET].map((secret) =>
      createLimiter(rule, { store: storeWith(secret) }),
    )
    await nodes[0].check('203.0.113.9', 4)
    expect((await nodes[1].check('203.0.113.9', 4)).remaining).toBe(2)
    expect((await nodes[1].check('203.0.113.10')).remaining).toBe(9)
    expect([...rows.keys()]).toHaveLength(2)
    for (const name of rows.keys()) expect(name).toMatch(/^sl\/sluice:hash:[\da-f]{32}$/)
  })

  it('hashes otherwise with another secret', async () => {
    const { rows, storeWith } = engineOf()
    await createLimiter(rule, { store: storeWith(SECRET) }).check('alice')
    await createLimiter(rule, { store: storeWith(`${SECRET}!`) }).check('alice')
    expect(rows.size).toBe(2)
  })

  it('lists hashes, which can be asked about and reset', async () => {
    const { rows, storeWith } = engineOf()
    const limiter = createLimiter(rule, { store: storeWith(SECRET) })
    await limiter.check('alice', 3)
    const listed: Entry[] = []
    for await (const entry of limiter.entries()) listed.push(entry)
    expect(listed.map(({ decision }) => decision.remaining)).toEqual([7])
    await limiter.reset(listed[0].key)
    expect(rows.size).toBe(0)
    expect((await limiter.peek('alice')).remaining).toBe(10)
  })

  it('counts a key and its hash as one, also in one trip', async () => {
    const { rows, storeWith } = engineOf()
    const limiter = createLimiter(rule, { store: storeWith(SECRET) })
    await limiter.check('alice')
    const [name] = rows.keys()
    const hash = name.slice('sl/'.length)
    const keys = ['alice', hash, 'alice', hash]
    const decisions = await limiter.checkMany(keys.map((key) => ({ key })))
    expect(decisions.map(({ remaining }) => remaining)).toEqual([8, 7, 6, 5])
  })

  it('hashes each field of a key', async () => {
    const { rows, storeWith } = engineOf()
    const limiter = createLimiter(
      [
        concurrency({ limit: 2, hold: '1m', by: 'user' }),
        fixedWindow({ limit: 5, per: '1m', by: 'org', name: 'org' }),
      ],
      { store: storeWith(SECRET) },
    )
    const permit = await limiter.tryAcquire({ user: 'alice', org: 'acme' })
    expect(permit.allowed).toBe(true)
    expect([...rows.keys()].join()).not.toMatch(/alice|acme/)
    if (permit.allowed) await permit.release()
    expect((await limiter.peek({ user: 'alice', org: 'acme' })).rules[0].remaining).toBe(2)
  })

  it('takes no secret that is short or no text', () => {
    const { storeWith } = engineOf()
    expect(() => storeWith('short')).toThrow('at least 16 characters, got 5')
    expect(() => storeWith(7 as never)).toThrow('at least 16 characters, got 7')
  })
})
