import { describe, expect, it } from 'vitest'
import { createLimiter, fixedWindow } from '../index.ts'
import { manualClock } from '../testing/index.ts'
import { rateLimit } from './fetch.ts'

describe('rateLimit of fetch handlers', () => {
  const made = () => {
    const clock = manualClock()
    const limiter = createLimiter(fixedWindow({ limit: 1, per: '10s' }), { clock })
    const limited = rateLimit({
      limiter,
      key: (request) => request.headers.get('x-user') ?? 'none',
    })
    const handler = limited(async () => new Response('hello'))
    const ask = (user: string) =>
      handler(new Request('http://localhost/', { headers: { 'x-user': user } }))
    return { clock, ask }
  }

  it('lets a request through with its fields, and refuses the next', async () => {
    const { clock, ask } = made()
    const first = await ask('alice')
    expect([first.status, await first.text()]).toEqual([200, 'hello'])
    expect(first.headers.get('x-ratelimit-remaining')).toBe('0')
    const second = await ask('alice')
    expect([second.status, second.headers.get('retry-after')]).toEqual([429, '10'])
    expect(second.headers.get('content-type')).toContain('application/problem+json')
    expect((await ask('bob')).status).toBe(200)
    clock.advance(10_000)
    expect((await ask('alice')).status).toBe(200)
  })

  it('says how to write what was swapped', async () => {
    const rules = fixedWindow({ limit: 1, per: '10s' })
    const hello = () => new Response('hello')
    const write = /rateLimit\(\{ rules, key \}\)\(handler\)/
    expect(() => rateLimit(hello as never)).toThrow(write)
    const limited = rateLimit({ rules, key: () => 'alice' }) as (given: unknown) => unknown
    expect(() => limited(new Request('http://localhost/'))).toThrow(/got a request/)
    expect(() => limited({ rules })).toThrow(write)
    expect(() => rateLimit(undefined as never)).toThrow(/got undefined/)
    expect(() => rateLimit({ rules, address: '192.0.2.1' as never })).toThrow(/must be a function/)
  })
})
