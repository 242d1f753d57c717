import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createClients } from './clients.ts'

it('numbers keys as a Map would, and returns them unchanged', () => {
  const key = fc.oneof(
    fc.constantFrom('a', '__proto__', '\0', '\ud800', 'x'.repeat(1_024)),
    fc.string({ minLength: 1, maxLength: 3 }),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
  )
  fc.assert(
    fc.property(fc.array(key, { maxLength: 200, size: 'max' }), (keys) => {
      const clients = createClients(1_000)
      const wanted = new Map<string, number>()
      for (const each of keys) if (!wanted.has(each)) wanted.set(each, wanted.size)
      expect(keys.map(clients.numberOf)).toEqual(keys.map((each) => wanted.get(each)))
      expect(clients.size()).toBe(wanted.size)
      expect([...wanted.values()].map(clients.keyOf)).toEqual([...wanted.keys()])
    }),
  )
})

it('holds many keys, over pages and growth, and no more than its maximum', () => {
  const clients = createClients(100_000)
  const keyOf = (i: number) => `${'client of a long name '.repeat(2)}${i}`
  let wrong = 0
  for (let round = 0; round < 2; round += 1) {
    for (let i = 0; i < 100_000; i += 1) if (clients.numberOf(keyOf(i)) !== i) wrong += 1
  }
  for (let i = 0; i < 100_000; i += 1) if (clients.keyOf(i) !== keyOf(i)) wrong += 1
  expect(wrong).toBe(0)
  expect([clients.numberOf('one more'), clients.size()]).toEqual([-1, 100_000])
})
