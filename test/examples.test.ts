import { execFile, spawn } from 'node:child_process'
import { promisify } from 'node:util'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { buildLibrary } from './threads/crew.ts'

beforeAll(buildLibrary, 60_000)

const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

/** Starts an example as `npm start` would, and returns its address once it listens. */
async function start(name: string, file = 'server.mjs'): Promise<string> {
  const words = file.endsWith('.ts') ? ['--import', 'tsx', file] : [file]
  const child = spawn(process.execPath, words, {
    cwd: `examples/${name}`,
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  stops.push(() => child.kill('SIGKILL'))
  let said = ''
  for await (const data of child.stdout) {
    said += data
    const port = /http:\/\/\S+:(\d+)/.exec(said)?.[1]
    if (port) return `http://localhost:${port}`
  }
  throw new Error(`examples/${name} ended: ${said}`)
}

/** Returns the statuses of `times` requests, sent one after the other. */
async function statuses(times: number, url: string, init?: RequestInit): Promise<number[]> {
  const all: number[] = []
  for (let i = 0; i < times; i += 1) all.push((await fetch(url, init)).status)
  return all
}

const times = (count: number, status: number) => Array<number>(count).fill(status)

describe('examples', () => {
  it('threads: four servers admit exactly 100 requests', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['examples/threads/main.mjs'])
    expect(stdout).toMatch(/^4 threads listen .*\n100 of 400 requests were allowed\n$/)
  })

  it('express: wrong passwords are limited, right ones are not', async () => {
    const url = await start('express')
    const right = { method: 'POST', headers: { 'x-password': 'secret' } }
    expect(await statuses(6, `${url}/login/alice`, right)).toEqual(times(6, 200))
    const wrong = await statuses(6, `${url}/login/bob`, { method: 'POST' })
    expect(wrong).toEqual([...times(5, 401), 429])
    expect((await fetch(`${url}/login/bob`, right)).status).toBe(429)
    expect((await fetch(url)).headers.get('x-ratelimit-remaining')).toBe('6')
  })

  it('fastify: routes have their own costs', async () => {
    const url = await start('fastify')
    expect(await statuses(4, `${url}/search`)).toEqual([200, 200, 200, 429])
    const { status, headers } = await fetch(url)
    expect([status, headers.get('x-ratelimit-remaining')]).toEqual([200, '0'])
    const refused = await fetch(url)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '6'])
    expect(await statuses(20, `${url}/health`)).toEqual(times(20, 200))
  })

  it('hono: a tier for each API key', async () => {
    const url = await start('hono')
    const as = (key: string) => ({ headers: { 'x-api-key': key } })
    expect(await statuses(4, url, as('key-of-bob'))).toEqual([200, 200, 200, 429])
    expect(await statuses(4, url, as('key-of-alice'))).toEqual(times(4, 200))
    expect((await fetch(url, as('key-of-alice'))).headers.get('x-ratelimit-limit')).toBe('30')
    // Unknown keys do not raise the limit.
    expect(await statuses(3, url)).toEqual(times(3, 200))
    expect((await fetch(url, as('made up'))).status).toBe(429)
  })

  it('koa: two rules in one decision', async () => {
    const url = await start('koa')
    expect(await statuses(6, url)).toEqual([...times(5, 200), 429])
    const { headers } = await fetch(url)
    expect(headers.get('ratelimit')).toMatch(/^"burst";r=0;t=1, "day";r=95;t=86400$/)
    expect(headers.get('ratelimit-policy')).toBe(
      '"burst";q=60;w=60;sluice-burst=5, "day";q=100;w=86400',
    )
  })

  it('nest: a guard and a decorator', async () => {
    const url = await start('nest', 'server.ts')
    expect(await statuses(4, `${url}/report`)).toEqual([200, 200, 200, 429])
    const { status, headers } = await fetch(url)
    expect([status, headers.get('x-ratelimit-remaining')]).toEqual([200, '19'])
  })

  it('fetch: behind a proxy that forwards the client address', async () => {
    const url = await start('fetch')
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
    expect(await statuses(4, url, from('203.0.113.1'))).toEqual([200, 200, 200, 429])
    expect((await fetch(url, from('203.0.113.2'))).status).toBe(200)
    expect((await fetch(url, from('6.6.6.6, 203.0.113.1'))).status).toBe(429)
  })

  it('node: five wait in line, the others are refused', async () => {
    const url = await start('node')
    const all = await Promise.all(Array.from({ length: 8 }, () => fetch(url)))
    const admitted = all.filter(({ status }) => status === 200)
    expect(admitted).toHaveLength(5)
    expect(all.filter(({ status }) => status === 429)).toHaveLength(3)
  })
})
