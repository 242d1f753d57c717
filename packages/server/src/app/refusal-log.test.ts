import { pino } from 'pino'
import { createLimiter, tokenBucket } from 'sluice'
import { describe, expect, it } from 'vitest'
import { createRefusalLog } from './refusal-log.ts'

describe('the log of refusals', () => {
  it('logs the reason, and after ten lines per second how many it left out', () => {
    const lines: Record<string, unknown>[] = []
    const logger = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) })
    let nowMs = 0
    const log = createRefusalLog(logger, () => nowMs)
    const limiter = createLimiter(tokenBucket({ limit: 3, per: '3s' }))
    limiter.check('alice', 2)
    const decision = limiter.peek('alice', 3)
    const refused = {
      ...{ route: 'search', tier: 'free', key: 'alice', cost: 3 },
      ...{ decision, shadowed: false, seconds: undefined },
    }
    for (let i = 0; i < 15; i += 1) log.note(refused)
    nowMs = 1_000
    log.note({ ...refused, shadowed: true })
    expect(lines).toHaveLength(11)
    expect(lines[0]).toMatchObject({
      ...{ route: 'search', tier: 'free', key: 'alice', rule: 'token-bucket', cost: 3 },
      ...{ remaining: 1, retryAfterMs: expect.closeTo(2_000, -2), source: 'store' },
      msg: 'refused',
    })
    expect(lines[10]).toMatchObject({ msg: 'would be refused', leftOut: 5 })
  })
})
