import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createTimeline } from './timeline.ts'

it('keeps every count in the bin of its time, in any order', () => {
  const times = fc.array(fc.oneof(fc.nat(1_000_000), fc.nat(2_000_000_000), fc.nat(2 ** 31)), {
    minLength: 1,
  })
  fc.assert(
    fc.property(times, (all) => {
      const timeline = createTimeline(2, 10)
      for (const time of all) timeline.count(time % 2, time)
      const [width, start] = [timeline.widthUs(), timeline.startUs()]
      for (const row of [0, 1]) {
        const wanted = timeline.row(row).map(() => 0)
        for (const time of all.filter((each) => each % 2 === row)) {
          wanted[Math.floor((time - start) / width)] += 1
        }
        expect(timeline.row(row)).toEqual(wanted)
      }
      expect(timeline.row(0).length).toBeLessThanOrEqual(10)
    }),
  )
})

it('makes bins no wider than needed', () => {
  const timeline = createTimeline(1)
  for (let second = 0; second < 600; second += 1) timeline.count(0, second * 1_000_000)
  expect([timeline.widthUs(), timeline.row(0).length]).toEqual([10_000_000, 60])
})
