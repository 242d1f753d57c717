// Runs in ts-jest, which compiles it to CommonJS, in a project with the packed library. TypeScript
// also
// checks it with all kinds of module resolution. `test/packed.test.ts` does both.
import { expect, test } from '@jest/globals'
import { createLimiter, type Decision, SluiceError, tokenBucket } from 'sluice'
import { sluiceStore } from 'sluice/compat/express-rate-limit'
import { sluiceStore as fastifyStore } from 'sluice/compat/fastify-rate-limit'
import { sluiceStorage } from 'sluice/compat/nest-throttler'
import { rateLimit as express } from 'sluice/express'
import { rateLimit as fastify } from 'sluice/fastify'
import { rateLimit as fetch } from 'sluice/fetch'
import { rateLimit as hono } from 'sluice/hono'
import { rateLimit as koa } from 'sluice/koa'
import { rateLimit as nest } from 'sluice/nest'
import { rateLimit as node } from 'sluice/node'
import { redisStore } from 'sluice/redis'
import { remoteStore } from 'sluice/remote'
import { sharedMemoryStore } from 'sluice/shared-memory'
import { manualClock } from 'sluice/testing'

test('imports every entry', () => {
  const stores = [redisStore, remoteStore, sharedMemoryStore, sluiceStorage, sluiceStore]
  const middleware = [express, fastify, fetch, hono, koa, nest, node]
  for (const each of [...stores, ...middleware, fastifyStore]) expect(typeof each).toBe('function')
})

test('has the types of limiters', () => {
  const clock = manualClock()
  const rules = [
    tokenBucket({ limit: 1, per: '1s', by: 'user' }),
    tokenBucket({ limit: 5, per: '1s', by: 'global', name: 'all' }),
  ] as const
  const limiter = createLimiter(rules, { clock })
  const decision: Decision = limiter.check({ user: 'alice' })
  expect(decision.allowed).toBe(true)
  expect(limiter.allow({ user: 'alice' })).toBe(false)
  // @ts-expect-error: there is no such field
  expect(() => limiter.allow({ usr: 'alice' })).toThrow(SluiceError)
  // @ts-expect-error: a decision has no such field
  expect(decision.left).toBeUndefined()
})

test('tells its errors', () => {
  let code: SluiceError['code'] | undefined
  try {
    tokenBucket({ limit: 0, per: '1s' })
  } catch (error) {
    if (SluiceError.is(error)) code = error.code
  }
  expect(code).toBe('SLUICE_RULE_LIMIT')
})
