import { storeSuite } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { twins } from './broken-twins.ts'

describe('the store suite notices when', () => {
  it.each(twins.map((twin) => [twin.bug, twin] as const))('%s', async (_, twin) => {
    const complaints: string[] = []
    for (const { name, run } of storeSuite(twin.make, { seed: 1, steps: 1_000 })) {
      await run().catch((error: Error) => complaints.push(`${name}: ${error.message}`))
    }
    expect(complaints).not.toEqual([])
    // A twin that breaks everything would say nothing about the bug.
    expect(complaints.length).toBeLessThan(60)
  })
})
