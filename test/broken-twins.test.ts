import { memoryStore } from 'sluice'
import { type MakeStore, manualClock, storeSuite } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { soundTwins, twins } from './broken-twins.ts'

async function complaintsAbout(make: MakeStore): Promise<string[]> {
  const complaints: string[] = []
  for (const { name, run } of storeSuite(make, { seed: 1, steps: 1_000 })) {
    await run().catch((error: Error) => complaints.push(`${name}: ${error.message}`))
  }
  return complaints
}

describe('the store suite', () => {
  // Without this, a suite that complains about everybody would pass for one that notices bugs.
  it('has nothing to say about a store that is right', async () => {
    const complaints = await complaintsAbout((options) => {
      const clock = manualClock()
      return { clock, store: memoryStore({ ...options, clock }) }
    })
    expect(complaints).toEqual([])
  })

  it.each(soundTwins)('has nothing to say when $bug', async ({ make }) =>
    expect(await complaintsAbout(make)).toEqual([]),
  )

  it.each(twins.map((twin) => [twin.bug, twin] as const))('notices when %s', async (_, twin) => {
    const complaints = await complaintsAbout(twin.make)
    expect(complaints).not.toEqual([])
    // A twin that breaks everything would say nothing about the bug.
    const all = storeSuite(twin.make, { seed: 1, steps: 1_000 }).length
    expect(complaints.length).toBeLessThan(0.75 * all)
  })
})
