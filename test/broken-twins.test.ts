import { memoryStore } from 'sluice'
import { type MakeStore, manualClock, storeSuite } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { soundTwins, twins } from './broken-twins.ts'
import { jointTwins, soundLimiter } from './joint-twins.ts'

/** Matches the cases about permits, penalties and keys with fields. */
const JOINT = /permit|penalty|concurrency|field|acquire|cost per rule|uses itself/

const casesFor = (make: MakeStore, about: RegExp) =>
  storeSuite(make, { seed: 1, steps: 1_000 }).filter(({ name }) => about.test(name))

async function complaintsAbout(make: MakeStore, about = /./): Promise<string[]> {
  const complaints: string[] = []
  for (const { name, run } of casesFor(make, about)) {
    await run().catch((error: Error) => complaints.push(`${name}: ${error.message}`))
  }
  return complaints
}

describe('the store suite', () => {
  // Without this, a suite that rejects every store would seem to notice bugs.
  it('accepts a correct store', async () => {
    const complaints = await complaintsAbout((options) => {
      const clock = manualClock()
      return { clock, store: memoryStore({ ...options, clock }) }
    })
    expect(complaints).toEqual([])
  })

  it.each([...soundTwins, soundLimiter])('accepts a store when $bug', async ({ make }) =>
    expect(await complaintsAbout(make)).toEqual([]),
  )

  const all = [
    ...twins.map((twin) => ({ ...twin, about: /./ })),
    ...jointTwins.map((twin) => ({ ...twin, about: JOINT })),
  ]
  it.each(all)('notices when $bug', async ({ make, about }) => {
    const complaints = await complaintsAbout(make, about)
    expect(complaints).not.toEqual([])
    // A twin that fails every case would prove nothing about its bug.
    expect(complaints.length).toBeLessThan(0.75 * casesFor(make, about).length)
  })
})
