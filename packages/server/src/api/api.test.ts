import { readFileSync } from 'node:fs'
import { pino } from 'pino'
import { createLimiter, createPolicy, memoryStore, tokenBucket } from 'sluice'
import { describe, expect, it } from 'vitest'
import { noAssignments } from '../limits.ts'
import { type ApiOptions, createApi } from './api.ts'
import { operations } from './openapi.ts'

const tokens = [
  { token: 'look', access: 'read' },
  { token: 'change', access: 'full' },
] as const

/** Routes that the service adds. */
const addedByApp = ['/v1/auth', '/v1/live']

function make(options: Partial<ApiOptions> = {}) {
  const rule = tokenBucket({ limit: 5, per: '1h' })
  const policy = createPolicy({ tiers: { free: rule }, defaultTier: 'free' })
  const tiers = createLimiter(policy, { store: memoryStore() })
  const limits = {
    ...{ tiers, policy, assignments: noAssignments, assign() {} },
    ...{ routes: new Map(), all: new Map([['tiers', tiers]]) },
  }
  const settings = { admin: { tokens }, routes: [], clients: {}, overrides: {} }
  return createApi({
    logger: pino({ level: 'silent' }),
    version: '1.2.3',
    current: () => ({ limits, settings }),
    notReady: () => undefined,
    metrics: async () => ({ text: '', type: 'text/plain' }),
    top: async () => [],
    reload: async () => {},
    onDecision() {},
    onUndecided() {},
    onSettled() {},
    ...options,
  })
}

/** All operations that need access, except those that the service adds. */
const guarded = Object.entries(operations).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, { access }]) => (access === 'read' || access === 'full') && path !== '/v1/live')
    .map(([method, { access }]) => ({ method: method.toUpperCase() as 'GET', path, access })),
)

describe('docs/reference/http-api.md', () => {
  const page = readFileSync(
    new URL('../../../../docs/reference/http-api.md', import.meta.url),
    'utf8',
  )
  const all = Object.entries(operations).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { access }]) => {
      return `| \`${method.toUpperCase()} ${path}\` | ${access ?? 'none'} |`
    }),
  )

  it.each(all)('has the line %s', (line) => expect(page).toContain(`\n${line}`))
})

describe('the API', () => {
  it('has many operations that need a token', () => expect(guarded.length).toBeGreaterThan(10))

  it.each(guarded)('refuses $method $path without $access access', async (operation) => {
    const { method, path, access } = operation
    const app = await make()
    const ask = async (token?: string) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const url = path.replace('{key}', 'alice')
      return (await app.inject({ method, url, headers })).statusCode
    }
    expect([await ask(), await ask('wrong')]).toEqual([401, 401])
    if (access === 'full') expect(await ask('look')).toBe(403)
    else expect(await ask('look')).toBe(200)
    // The missing body may be an error.
    expect([200, 400]).toContain(await ask('change'))
  })

  it('does not reveal internal errors', async () => {
    const top = () => Promise.reject(new Error('connect to redis://:secret@10.0.0.1'))
    const headers = { authorization: 'Bearer look' }
    const response = await (await make({ top })).inject({ url: '/v1/top', headers })
    expect(response.headers['content-type']).toMatch(/^application\/problem\+json/)
    expect(response.json()).toEqual({
      type: 'about:blank',
      title: 'Internal Server Error',
      status: 500,
      detail: 'Internal error.',
    })
  })

  it('says why it is not ready', async () => {
    expect((await (await make()).inject('/readyz')).json()).toEqual({ status: 'ready' })
    const app = await make({ notReady: () => 'The store is unavailable.' })
    expect((await app.inject('/readyz')).json()).toMatchObject({
      status: 503,
      title: 'Service Unavailable',
      detail: 'The store is unavailable.',
    })
  })

  it('describes all operations, and no others', async () => {
    const seen: string[] = []
    const app = await make({
      add: (app) => {
        for (const line of app.printRoutes({ commonPrefix: false }).split('\n')) seen.push(line)
      },
    })
    const { paths } = (await app.inject('/v1/openapi.json')).json()
    for (const [path, methods] of Object.entries(operations)) {
      expect(Object.keys(paths[path])).toEqual(Object.keys(methods))
      if (addedByApp.includes(path)) continue
      for (const method of Object.keys(methods)) {
        const url = path.replace('{key}', ':key')
        const there = app.hasRoute({ url, method: method.toUpperCase() as 'GET' })
        expect([method, path, there]).toEqual([method, path, true])
      }
    }
    const described = Object.values(operations).flatMap((methods) => Object.keys(methods)).length
    const routed = seen.join('\n').match(/\((?:[A-Z]+(?:, )?)+\)/g) ?? []
    const count = routed.join(' ').match(/GET|POST|PUT|DELETE/g)?.length
    expect(count).toBe(described - addedByApp.length)
  })
})
