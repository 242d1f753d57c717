import { once } from 'node:events'
import { connect } from 'node:net'
import fastify, { type FastifyInstance } from 'fastify'
import { createLimiter, tokenBucket } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import type { LiveAbout, LiveKey } from './live-event.ts'
import { createLiveFeed, type LiveFeed } from './live-feed.ts'
import { createLiveHub } from './live-hub.ts'
import { addLive } from './live-route.ts'

const about: LiveAbout = {
  version: '1.2.3',
  tiers: {},
  routes: {},
  store: { kind: 'memory', onFailure: 'local' },
}
const apps: FastifyInstance[] = []
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close()
})

async function serve(limited: LiveKey[] = []) {
  const feed = createLiveFeed({ limited: () => limited })
  const app = fastify({ forceCloseConnections: true })
  const service = { about }
  const hub = createLiveHub({ feed, gather: async (asked) => [feed.tell(asked)] })
  addLive(app, {
    hub,
    about: () => service.about,
    mayChange: () => false,
    onRequest: (_request, _reply, next) => next(),
  })
  apps.push(app)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { feed, service, app, url: `${url}/v1/live` }
}

/** Reads events as they come: `next()` gives their names and data. */
async function listen(url: string) {
  const response = await fetch(url)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return {
    type: response.headers.get('content-type'),
    async next(): Promise<[string, Record<string, unknown>]> {
      while (!text.includes('\n\n')) text += (await reader.read()).value ?? '\n\n'
      const [event, ...rest] = text.split('\n\n')
      text = rest.join('\n\n')
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? []
      return [name, JSON.parse(data ?? 'null')]
    },
    cancel: () => reader.cancel(),
  }
}

function decide(feed: LiveFeed, key: string): void {
  const decision = createLimiter(tokenBucket({ limit: 1, per: '1s' })).check(key)
  feed.decided({ route: 'r', tier: '', key, cost: 1, decision, shadowed: false, seconds: 0 })
}

describe('GET /v1/live', () => {
  it('sends the history, news and changes of the configuration', async () => {
    const { feed, service, url } = await serve()
    decide(feed, 'a')
    feed.tick()
    const events = await listen(url)
    expect(events.type).toBe('text/event-stream')
    const [name, start] = await events.next()
    expect([name, start]).toMatchObject([
      'start',
      { version: '1.2.3', mayChange: false, history: [{ counts: [{ allowed: 1 }] }] },
    ])
    decide(feed, 'b')
    decide(feed, 'b')
    feed.tick()
    const second = await events.next()
    expect(second).toMatchObject(['second', { counts: [{ route: 'r', allowed: 2 }] }])
    service.about = { ...about, version: '1.2.4' }
    feed.tick()
    expect(await events.next()).toMatchObject(['about', { version: '1.2.4' }])
    await events.cancel()
  })

  it('sends decisions about a requested key, also with line breaks in it', async () => {
    const { feed, url } = await serve()
    const key = 'a\n\nevent: x\ndata: <img>'
    const events = await listen(`${url}?key=${encodeURIComponent(key)}`)
    expect((await events.next())[0]).toBe('start')
    expect(await events.next()).toEqual(['key', { key, decisions: [], leftOut: 0 }])
    decide(feed, key)
    feed.tick()
    expect((await events.next())[0]).toBe('second')
    expect(await events.next()).toMatchObject(['key', { key, decisions: [{ route: 'r' }] }])
    await events.cancel()
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(404)
  })

  it('serves 32 watchers, and another when one leaves', async () => {
    const { url } = await serve()
    const all = await Promise.all(Array.from({ length: 32 }, () => listen(url)))
    const refused = await fetch(url)
    expect([refused.status, await refused.json()]).toMatchObject([503, { status: 503 }])
    await all[0].cancel()
    await expect
      .poll(async () => {
        const response = await fetch(url)
        await response.body?.cancel()
        return response.status
      })
      .toBe(200)
    for (const events of all) await events.cancel()
  })

  it('skips watchers that do not read, and drops them in the end', async () => {
    const about = { route: '', tier: '', rule: '', error: 0, lastMs: 0, count: 1, shadowed: 0 }
    const { feed, app, url } = await serve([{ key: 'x'.repeat(4_000_000), ...about }])
    const socket = connect(Number(new URL(url).port), '127.0.0.1').pause()
    socket.write('GET /v1/live HTTP/1.1\r\nHost: x\r\n\r\n')
    const [, response] = await once(app.server, 'request')
    const ended = new Promise((resolve) => response.once('close', resolve))
    await new Promise((resolve) => setTimeout(resolve, 50))
    for (let i = 0; i < 40; i += 1) {
      feed.tick()
      await new Promise((resolve) => setImmediate(resolve))
    }
    await ended
    socket.destroy()
  })

  it('ends when the server closes', async () => {
    const { app, url } = await serve()
    const events = await listen(url)
    await events.next()
    await app.close()
    expect(await events.next()).toEqual([undefined, null])
  })
})
