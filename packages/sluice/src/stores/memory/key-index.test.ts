import { describe, expect, it } from 'vitest'
import { createKeyIndex } from './key-index.ts'

/** Creates an index, a reference `Map`, and the keys by row as the index's owner keeps them. */
function twins(maxKeys: number) {
  const keys: string[] = []
  const index = createKeyIndex(keys, maxKeys)
  const map = new Map<string, number>()
  const find = (key: string) => {
    index.aim(key)
    return index.find(key)
  }
  const add = (key: string) => {
    expect(find(key)).toBe(-1)
    const row = keys.push(key) - 1
    index.add(row)
    map.set(key, row)
  }
  const remove = (key: string) => {
    index.remove(map.get(key)!)
    map.delete(key)
  }
  return { keys, index, map, find, add, remove }
}

describe.each([
  { size: 'one shard', before: 0, maxKeys: 10_000 },
  { size: 'many shards', before: 70_000, maxKeys: 1_000_000 },
])('a key index of $size', ({ before, maxKeys }) => {
  function filled() {
    const made = twins(maxKeys)
    for (let i = 0; i < before; i += 1) made.add(`before ${i}`)
    return made
  }

  it('finds the same rows as a Map', () => {
    const { map, find, add, remove } = filled()
    let seed = 7
    const random = (n: number) => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) | 0
      return (seed >>> 0) % n
    }
    for (let step = 0; step < 50_000; step += 1) {
      const key = `key ${random(step < 25_000 ? 3_000 : 300)}`
      if (map.has(key)) remove(key)
      else add(key)
    }
    for (let i = 0; i < before; i += 7) remove(`before ${i}`)
    const all = [
      ...Array.from({ length: 3_000 }, (_, i) => `key ${i}`),
      ...Array.from({ length: before }, (_, i) => `before ${i}`),
    ]
    expect(all.map(find)).toEqual(all.map((key) => map.get(key) ?? -1))
  })

  it('adds the key given to aim, whichever row is removed in between', () => {
    const { keys, index, find, add, remove } = filled()
    for (let i = 0; i < 500; i += 1) add(`old ${i}`)
    for (let i = 0; i < 500; i += 1) {
      expect(find(`new ${i}`)).toBe(-1)
      remove(`old ${i}`)
      keys[before + i] = `new ${i}`
      index.add(before + i)
    }
    expect(keys.map(find)).toEqual(keys.map((_, i) => i))
  })

  it('is empty after a clear', () => {
    const { index, find, add } = filled()
    add('key 7')
    index.clear()
    expect([find('key 7'), find('before 7')]).toEqual([-1, -1])
  })
})
