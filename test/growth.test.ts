import { expect, it } from 'vitest'
import { growth } from '../scripts/growth.mjs'

it('distinguishes growing memory from stable memory', () => {
  const warm = [50, 80, 100]
  expect(growth([...warm, 100, 130, 101, 99, 100, 102])).toBeCloseTo(1, 1)
  expect(growth([...warm, 110, 120, 130, 140, 150, 160])).toBeGreaterThan(1.2)
  expect(() => growth([1, 2])).toThrow('too few')
})
