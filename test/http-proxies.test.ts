import { tokenBucket } from 'sluice'
import { rateLimit as forFetch } from 'sluice/fetch'
import { rateLimit as forHono } from 'sluice/hono'
import { clientKey, rateLimit as forNode } from 'sluice/node'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { proxiedServers } from './http/proxied-servers.ts'
import type { CommonOptions, Running } from './http/servers.ts'

let running: Running | undefined
const emitWarning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
afterEach(async () => {
  await running?.close()
  running = undefined
  emitWarning.mockClear()
})

const two = tokenBucket({ limit: 2, per: '1h' })
const ours = () =>
  emitWarning.mock.calls.filter(([, options]) => Object(options).code === 'SLUICE_TRUST_PROXY')

for (const [name, start] of Object.entries(proxiedServers)) {
  describe(name, () => {
    const open = async (trusted: string | boolean, options: CommonOptions) => {
      running = await start(trusted, options)
      const { port } = running
      return async (forwarded?: string) => {
        const headers = forwarded === undefined ? undefined : { 'x-forwarded-for': forwarded }
        return (await fetch(`http://127.0.0.1:${port}/`, { headers })).status
      }
    }
    const framework: CommonOptions = { rules: two, trustProxy: 'framework' }

    it('counts by the address that the framework finds', async () => {
      const ask = await open('127.0.0.1', framework)
      // What a client wrote comes before what the proxy wrote, and does not count.
      const statuses: number[] = []
      for (let i = 0; i < 3; i += 1) statuses.push(await ask(`198.51.100.${i}, 192.0.2.1`))
      expect([...statuses, await ask('192.0.2.2')]).toEqual([200, 200, 429, 200])
      expect(ours()).toEqual([])
    })

    it('recognizes a client by any spelling of its address, and by its network', async () => {
      const ask = await open('127.0.0.1', framework)
      const spelt = ['::ffff:192.0.2.1', '192.0.2.1', '::FFFF:C000:201']
      const near = ['2001:db8::1', '2001:db8:0:0:ffff::2', '2001:DB8::3']
      for (const clients of [spelt, near]) {
        const statuses: number[] = []
        for (const client of clients) statuses.push(await ask(client))
        expect(statuses).toEqual([200, 200, 429])
      }
    })

    it('counts an unparsable entry as the proxy that wrote it', async () => {
      const ask = await open(true, { ...framework, allowList: ['127.0.0.1'] })
      const statuses: number[] = []
      for (const text of ['not an address', 'x'.repeat(5_000), '<>']) statuses.push(await ask(text))
      expect(statuses).toEqual([200, 200, 429])
    })

    it('counts by the connection if the framework trusts no proxy', async () => {
      const ask = await open(false, framework)
      const statuses: number[] = []
      for (let i = 0; i < 3; i += 1) statuses.push(await ask(`192.0.2.${i}`))
      expect(statuses).toEqual([200, 200, 429])
    })

    it('warns once if trustProxy is not set', async () => {
      const ask = await open('127.0.0.1', { rules: two })
      expect(await ask('192.0.2.1')).toBe(200)
      expect(await ask('192.0.2.2')).toBe(200)
      expect(await ask('192.0.2.3')).toBe(429)
      const first = !['express 4', 'nest on express', 'nest on fastify'].includes(name)
      expect(ours()).toHaveLength(first ? 1 : 0)
      if (first) expect(ours()[0][0]).toContain("Give `trustProxy: 'framework'`")
    })

    it('does not warn if trustProxy is set, or if the framework trusts no proxy', async () => {
      for (const [trusted, options] of [
        ['127.0.0.1', { trustProxy: 0 }],
        ['127.0.0.1', { trustProxy: 1 }],
        [false, {}],
      ] as const) {
        const ask = await open(trusted, { rules: two, ...options })
        await ask('192.0.2.1')
        await running?.close()
      }
      expect(ours()).toEqual([])
    })
  })
}

it.each<[string, (options: never) => unknown]>([
  ['sluice/fetch', forFetch],
  ['sluice/hono', forHono],
  ['sluice/node', forNode],
  ['clientKey', ({ trustProxy }) => clientKey({ trustProxy })],
])("%s refuses 'framework', which it has none of", (_name, make) => {
  expect(() => make({ rules: two, trustProxy: 'framework' } as never)).toThrow(
    /got "framework"\. Only Express, Fastify, Koa and Nest/,
  )
})
