import { expect, it } from 'vitest'
import { slotOfName } from './slots.ts'

it('computes the slot of a name as Redis Cluster does', () => {
  // From the Redis Cluster specification, and from CLUSTER KEYSLOT on a server.
  expect(slotOfName('123456789')).toBe(0x31c3)
  expect(slotOfName('foo')).toBe(12_182)
  expect(slotOfName('')).toBe(0)
})
