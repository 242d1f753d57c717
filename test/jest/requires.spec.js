// Runs in Jest, in a project that has the packed library: `test/packed.test.ts` puts it there.
const { once } = require('node:events')
const express = require('express')
const { createLimiter, memoryStore, SluiceError, tokenBucket } = require('sluice')
const { rateLimit } = require('sluice/express')
const { manualClock } = require('sluice/testing')
const { exports: entries } = require('sluice/package.json')

test.each(Object.keys(entries))('requires %s', (entry) => {
  expect(Object.keys(require(entry.replace('.', 'sluice'))).length).toBeGreaterThan(0)
})

test('decides, by a clock of the test', () => {
  const clock = manualClock()
  const store = memoryStore({ clock })
  const limiter = createLimiter(tokenBucket({ limit: 1, per: '1s' }), { store })
  expect([limiter.allow('alice'), limiter.allow('alice')]).toEqual([true, false])
  clock.advance(1_000)
  expect(limiter.allow('alice')).toBe(true)
})

test('throws a SluiceError', () => {
  expect(() => createLimiter(tokenBucket({ limit: 0, per: '1s' }))).toThrow(SluiceError)
})

test('limits an Express app', async () => {
  const rules = tokenBucket({ limit: 2, per: '1h' })
  const app = express().use(rateLimit({ rules }))
  const server = app.get('/', (_request, response) => response.send('hello')).listen(0)
  await once(server, 'listening')
  const url = `http://127.0.0.1:${server.address().port}/`
  const statuses = []
  for (let i = 0; i < 3; i += 1) statuses.push((await fetch(url)).status)
  server.close()
  expect(statuses).toEqual([200, 200, 429])
})
