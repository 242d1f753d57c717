import { expect, it } from 'vitest'
import { redisStandIn } from './redis-stand-in.ts'

it('must be told the clock, without which every decision would be local', () => {
  expect(() => redisStandIn(undefined as never)).toThrow(
    'redisStandIn: nowUs must be a function, such as that of manualClock(), got undefined.',
  )
})
