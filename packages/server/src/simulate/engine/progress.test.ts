import { expect, it } from 'vitest'
import { createProgress } from './progress.ts'

function play(total: number | undefined, steps: readonly [ms: number, bytes: number][]) {
  let now = 0
  const shown: string[] = []
  const progress = createProgress(
    total,
    (text) => void shown.push(text),
    undefined,
    () => now,
  )
  for (const [ms, bytes] of steps) {
    now = ms
    progress.read(bytes)
  }
  progress.done()
  return shown
}

it('shows the share and the time left, five times a second at most', () =>
  expect(
    play(8 * 2 ** 20, [
      [1_000, 2 ** 20],
      [1_100, 2 ** 20],
      [2_000, 2 ** 21],
    ]),
  ).toEqual([
    '███░░░░░░░░░░░░░░░░░░░░░ 12 % of 8.0 MiB, 1.0 MiB/s, about 7 s left',
    '████████████░░░░░░░░░░░░ 50 % of 8.0 MiB, 2.0 MiB/s, about 2 s left',
    '',
  ]))

it('shows how much was read if the end is not known', () =>
  expect(play(undefined, [[500, 1_024]])).toEqual(['1.0 KiB read, 2.0 KiB/s', '']))
