import { pino } from 'pino'
import { createLimiter, createPolicy, memoryStore, tokenBucket } from 'sluice'
import { describe, expect, it } from 'vitest'
import { noAssignments } from '../limits.ts'
import { createApi } from './api.ts'
import { operations } from './openapi.ts'

const addedByApp = ['/v1/auth', '/v1/live']

describe('the description of the API', () => {
  it('has everything that is there, and nothing else', async () => {
    const policy = createPolicy({
      tiers: { free: tokenBucket({ limit: 5, per: '1h' }) },
      defaultTier: 'free',
    })
    const tiers = createLimiter(policy, { store: memoryStore() })
    const limits = {
      tiers,
      policy,
      assignments: noAssignments,
      assign() {},
      routes: new Map(),
      all: new Map([['tiers', tiers]]),
    }
    const settings = { admin: { tokens: [] }, routes: [], clients: {}, overrides: {} }
    const seen: string[] = []
    const app = await createApi({
      logger: pino({ level: 'silent' }),
      version: '1.2.3',
      current: () => ({ limits, settings }),
      notReady: () => undefined,
      metrics: async () => ({ text: '', type: 'text/plain' }),
      top: async () => [],
      reload: async () => {},
      onDecision() {},
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
