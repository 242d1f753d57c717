import { describe, expect, it } from 'vitest'
import { greeting } from './greeting.ts'

describe('the greeting', () => {
  it('has lines that can be copied as a whole, with their comments in one column', () => {
    const served = { gatewayUrl: 'http://127.0.0.1:8080', apiUrl: 'http://127.0.0.1:8081' }
    const lines = greeting(served, undefined, 1).match(/^ +curl.*$/gm) ?? []
    expect(lines).toHaveLength(4)
    expect(lines[0]).toMatch(/^ {2}curl -i http:\/\/127\.0\.0\.1:8080\/hello +# 20 pass at once/)
    expect(new Set(lines.map((line) => line.indexOf(' # '))).size).toBe(1)
    expect(greeting(served, 'sluice.yaml', 4)).toMatch(/\(4 processes\)/)
    expect(greeting(served, 'sluice.yaml', 4)).not.toContain('curl')
  })
})
