import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createInOrder } from './in-order.ts'
import { type LogRequest, requestOf } from './request.ts'

function play(times: readonly number[], size: number) {
  const given: LogRequest[] = []
  const order = createInOrder((request) => void given.push(request), size)
  times.forEach((timeUs, i) => void order.push(requestOf(timeUs, `k${i}`) as LogRequest))
  order.flush()
  return {
    times: given.map(({ timeUs }) => timeUs),
    keys: given.map(({ key }) => key),
    reordered: order.reordered(),
    late: order.late(),
  }
}

it('passes on the earliest first, and equal times in their order', () =>
  expect(play([3, 1, 1, 2], 4)).toEqual({
    times: [1, 1, 2, 3],
    keys: ['k1', 'k2', 'k3', 'k0'],
    reordered: 3,
    late: 0,
  }))

it('counts requests that come too late', () =>
  expect(play([5, 6, 7, 1], 2)).toMatchObject({ times: [5, 6, 1, 7], late: 1, reordered: 0 }))

it('loses nothing, and sorts all within its buffer', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20)), (steps) => {
      // No request is more than 20 earlier than one before it, and there is one each microsecond.
      const times = steps.map((step, i) => i + step)
      const { times: given, late } = play(times, 32)
      expect(given).toEqual([...times].sort((a, b) => a - b))
      expect(late).toBe(0)
    }),
  )
})
