import { describe, expect, it } from 'vitest'
import { createLabelCap } from './label-cap.ts'

describe('createLabelCap', () => {
  it('lets the first combinations through, however often, and no others', () => {
    const fits = createLabelCap(2)
    expect(fits('a', 'b', 'c')).toBe(true)
    expect(fits('a', 'b', '')).toBe(true)
    expect(fits('a', '', 'b')).toBe(false)
    expect(fits('a', 'b', 'c')).toBe(true)
  })
})
