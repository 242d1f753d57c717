import { expect, it } from 'vitest'
import { slotOfName } from './slots.ts'

it('is the slot that Redis Cluster has for a name', () => {
  // From the specification of Redis Cluster, and CLUSTER KEYSLOT of a server.
  expect(slotOfName('123456789')).toBe(0x31c3)
  expect(slotOfName('foo')).toBe(12_182)
  expect(slotOfName('')).toBe(0)
})
