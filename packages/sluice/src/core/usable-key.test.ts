import { describe, expect, it } from 'vitest'
import { hostileKeys } from '../testing/hostile-keys.ts'
import { isKey } from './key.ts'
import { anyKey, usableKey } from './usable-key.ts'

const long = 'x'.repeat(1_025)

describe('usableKey', () => {
  it('returns a valid key unchanged', () => expect(hostileKeys.map(usableKey)).toEqual(hostileKeys))

  it('turns different invalid texts into different keys, the same in every process', () => {
    const all = ['', long, `${long}y`, `${'x'.repeat(1_024)}y`, 'sluice:', 'sluice:text:1']
    const keys = all.map(usableKey)
    expect(keys.every(isKey)).toBe(true)
    expect(new Set([...keys, ...all]).size).toBe(2 * all.length)
    expect(keys[0]).toBe(
      'sluice:text:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    )
  })

  it('distinguishes long texts that differ only in a lone surrogate', () =>
    expect(usableKey(`\ud800${long}`)).not.toBe(usableKey(`\udfff${long}`)))

  it('never returns a key that a client could send', () =>
    expect(usableKey(usableKey(long))).not.toBe(usableKey(long)))

  it('counts the arrays and objects of repeated parameters', () => {
    const query = Object.assign(Object.create(null), { a: 'alice' })
    const all = [['alice'], ['alice', 'bob'], ['alice,bob'], [], {}, query, { a: [long] }]
    const keys = all.map(usableKey)
    expect(keys.every(isKey)).toBe(true)
    expect(new Set(keys).size).toBe(all.length)
    expect(usableKey(['alice'])).toBe(keys[0])
    expect(usableKey(JSON.stringify(['alice']))).not.toBe(keys[0])
  })

  it('counts values that are nested too deeply for JSON', () => {
    const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
    expect(() => JSON.stringify(deep)).toThrow(RangeError)
    expect(isKey(usableKey(deep))).toBe(true)
  })

  const cycle: unknown[] = []
  cycle.push(cycle)
  const { proxy, revoke } = Proxy.revocable([], {})
  revoke()

  it.each([
    ['a number', 1],
    ['a bigint', 1n],
    ['true', true],
    ['null', null],
    ['undefined', undefined],
    ['a symbol', Symbol('a')],
    ['a function', () => 'a'],
    ['an instance of a class', new Date(0)],
    ['a map', new Map()],
    ['a cycle', () => cycle],
    ['a revoked proxy', () => proxy],
  ])('throws for %s, and says why', (name, made) => {
    const key = typeof made === 'function' && name !== 'a function' ? made() : made
    expect(() => usableKey(key)).toThrow(expect.objectContaining({ code: 'SLUICE_KEY' }))
  })
})

describe('anyKey', () => {
  it('equals usableKey for values that a client can send', () => {
    const all = ['', 'alice', long, ['alice'], { a: 'alice' }]
    expect(all.map(anyKey)).toEqual(all.map(usableKey))
  })

  it('converts anything else to a string', () => {
    class Id {
      toString() {
        return 'id-1'
      }
    }
    expect([undefined, null, 42, 7n, true, new Id()].map(anyKey)).toEqual([
      'undefined',
      'null',
      '42',
      '7',
      'true',
      'id-1',
    ])
    expect(isKey(anyKey(cycle))).toBe(true)
  })

  const cycle: unknown[] = []
  cycle.push(cycle)
})
