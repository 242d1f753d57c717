import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fastify from 'fastify'
import { parseRule } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import type { Settings } from '../packages/server/src/settings.ts'
import { useRedis } from './redis/fixture.ts'
import { as, closeAll, json, settingsOf, start } from './server/service.ts'

afterEach(closeAll)

const redis = useRedis()
/** The stores. The API's answers do not depend on them. */
const stores = {
  memory: () => settingsOf({}).store,
  redis: () => ({
    ...settingsOf({}).store,
    kind: 'redis' as const,
    urls: [`redis://127.0.0.1:${redis.server.port}`],
    prefix: `api-${Math.random()}`,
  }),
}

const routes = [
  { name: 'own', path: '/own', rules: [parseRule('2/1h')] },
  { name: 'trial', path: '/trial', rules: [parseRule('2/1h')], shadow: true },
  { name: 'even', path: '/even', rules: [parseRule('1/1h queue 5 leaky-bucket')], shadow: true },
]

type Answer = Record<string, unknown> & { readonly status: number }

/** A service with routes, and the way to send JSON to its API. */
async function service(given: Partial<Settings> = {}) {
  const started = await start(settingsOf(given, routes))
  const post = async (path: string, body: unknown, headers = {}): Promise<Answer> => {
    const response = await fetch(`${started.apiUrl}${path}`, json(body, 'POST', headers))
    return { status: response.status, ...((await response.json()) as object) }
  }
  const get = async (path: string) => (await fetch(`${started.apiUrl}${path}`)).json()
  const metrics = async (name: string) => {
    const text = await (await fetch(`${started.apiUrl}/metrics`)).text()
    return text.split('\n').filter((line) => line.startsWith(`${name}{`))
  }
  const check = (body: unknown) => post('/v1/check', body)
  return { ...started, post, get, check, metrics }
}

describe.each(Object.entries(stores))('the decision API on %s', (_name, store) => {
  it('admits a request on a shadow route, and reports the decision', async () => {
    const { check } = await service({ store: store() })
    const asked = { key: 'alice', cost: 2, route: 'trial' }
    const marks = { status: 200, allowed: true, shadow: true }
    expect(await check(asked)).toMatchObject({ ...marks, wouldAllow: true, remaining: 0 })
    const refused = await check(asked)
    expect(refused).toMatchObject({ ...marks, wouldAllow: false, capacity: 2, remaining: 0 })
    expect(refused.retryAfterMs).toBeGreaterThan(3_000_000)
    const { decisions } = await check({ checks: [asked, { ...asked, route: 'own' }] })
    expect(decisions).toMatchObject([
      { allowed: true, shadow: true, wouldAllow: false },
      { allowed: true, remaining: 0 },
    ])
    // Only shadow routes are marked.
    expect((decisions as object[])[1]).not.toHaveProperty('shadow')
    expect((decisions as object[])[1]).not.toHaveProperty('wouldAllow')
  })

  it('refuses a blocked key on a shadow route', async () => {
    const { check, post } = await service({ store: store() })
    await post('/v1/keys/alice/block', { duration: '1m' })
    const blocked = { allowed: false, shadow: true, wouldAllow: false, source: 'blocked' }
    expect(await check({ key: 'alice', route: 'trial' })).toMatchObject(blocked)
    const never = await check({ key: 'alice', route: 'trial', cost: 3 })
    expect(never).toMatchObject({ ...blocked, never: true, retryAfterMs: null })
  })

  it('answers a cost above the capacity with 200 and a permanent refusal', async () => {
    const { check } = await service({ store: store() })
    await check({ key: 'alice', cost: 2 })
    const never = await check({ key: 'alice', cost: 6 })
    expect(never).toMatchObject({
      ...{ status: 200, allowed: false, never: true, retryAfterMs: null, delayMs: 0 },
      ...{ capacity: 5, remaining: 3, rule: 'token-bucket' },
      rules: [{ rule: 'token-bucket', capacity: 5, remaining: 3, retryAfterMs: null }],
    })
    expect(await check({ key: 'alice', cost: 3, route: 'trial' })).toMatchObject({
      ...{ status: 200, allowed: true, shadow: true, wouldAllow: false, never: true },
    })
    // Nothing was spent.
    expect(await check({ key: 'alice', cost: 0 })).toMatchObject({ remaining: 3 })
    expect(await check({ key: 'alice', cost: 1_000_000_000_001 })).toMatchObject({ status: 400 })
  })

  it('decides the rest of a batch in which some requests can never pass', async () => {
    const { check } = await service({ store: store() })
    const { decisions } = await check({
      checks: [
        { key: 'alice', cost: 6 },
        { key: 'alice', cost: 4 },
        { key: 'alice', cost: 6, tier: 'pro' },
        { key: 'alice', cost: 3, route: 'own' },
        { key: 'alice', cost: 2 },
      ],
    })
    expect(decisions).toMatchObject([
      { allowed: false, never: true, capacity: 5, retryAfterMs: null },
      { allowed: true, remaining: 1 },
      { allowed: true, capacity: 100, remaining: 90 },
      { allowed: false, never: true, capacity: 2, retryAfterMs: null },
      { allowed: false, remaining: expect.any(Number), retryAfterMs: expect.any(Number) },
    ])
    const bad = { checks: [{ key: 'bob', cost: 6 }, { key: 'bob', cost: 1 }, { key: '' }] }
    expect(await check(bad)).toMatchObject({ status: 400, code: 'SLUICE_KEY' })
    expect(await check({ key: 'bob' })).toMatchObject({ remaining: 4 })
  })

  it('charges and refunds, by the rules of a key, a tier or a route', async () => {
    const { post, check, metrics } = await service({ store: store() })
    const remaining = async (asked: object) => (await check({ ...asked, cost: 0 })).remaining
    const alice = { key: 'alice' }
    await check({ key: 'alice', cost: 3 })
    const charged = await post('/v1/charge', { ...alice, cost: 4 })
    expect(charged).toEqual({ status: 200, key: 'alice', charged: 4 })
    // Two units of debt, which refill first.
    const { allowed, retryAfterMs } = await check(alice)
    expect([allowed, Math.round(Number(retryAfterMs) / 60_000)]).toEqual([false, 36])
    const refunded = await post('/v1/refund', { ...alice, cost: 6 })
    expect(refunded).toEqual({ status: 200, key: 'alice', refunded: 6 })
    expect(await remaining(alice)).toBe(4)
    // Never more than full.
    await post('/v1/refund', { ...alice, cost: 1_000 })
    expect(await remaining(alice)).toBe(5)

    const own = { key: 'alice', route: 'own' }
    await post('/v1/charge', { ...own, cost: 1 })
    expect([await remaining(own), await remaining(alice)]).toEqual([1, 5])
    await post('/v1/charge', { ...alice, tier: 'pro', cost: 60 })
    expect(await remaining({ ...alice, tier: 'pro' })).toBe(40)
    expect(await metrics('sluice_settlements_total')).toEqual([
      'sluice_settlements_total{route="",verb="charge"} 2',
      'sluice_settlements_total{route="",verb="refund"} 2',
      'sluice_settlements_total{route="own",verb="charge"} 1',
    ])
  })
})

describe('the decision API', () => {
  it('delays no request on a shadow route', async () => {
    const { check } = await service()
    const asked = { key: 'alice', route: 'even' }
    await check(asked)
    const held = await check(asked)
    expect(held).toMatchObject({ allowed: true, wouldAllow: true, delayMs: 0 })
    expect(held.rules).toMatchObject([{ delayMs: expect.closeTo(3_600_000, -4) }])
  })

  it('counts and logs shadow decisions as such', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-api-'))
    const file = join(folder, 'decisions.jsonl')
    const { check, get, post, metrics, close } = await service({
      decisionLog: { file, maxBytes: 1_048_576, files: 1 },
    })
    const asked = { key: 'alice', cost: 2, route: 'trial' }
    await check({ checks: [asked, asked] })
    await check(asked)
    // Costs that can never pass: only counted, except on a shadow route, which refuses nothing.
    await check({ ...asked, cost: 3 })
    await check({ key: 'alice', cost: 6 })
    expect(await get('/v1/top')).toMatchObject({
      keys: [{ key: 'alice', refused: 0, shadowed: 2 }],
    })
    const state = await get('/v1/keys/alice')
    const trial = { route: 'trial', shadow: true, wouldAllow: false }
    expect(state.routes).toContainEqual(expect.objectContaining({ ...trial, allowed: true }))
    await post('/v1/keys/alice/block', { duration: '1m' })
    await check(asked)
    expect((await get('/v1/keys/alice')).routes).toContainEqual(
      expect.objectContaining({ ...trial, allowed: false }),
    )
    const counts = await metrics('sluice_decisions_total')
    expect(
      counts.map((line) => /outcome="(\w+)",source="(\w+)"\} (\d)/.exec(line)?.slice(1)),
    ).toEqual([
      ['allowed', 'store', '1'],
      ['shadowed', 'store', '2'],
      ['refused', 'blocked', '1'],
    ])
    expect(await metrics('sluice_undecided_refusals_total')).toEqual([
      'sluice_undecided_refusals_total{route="",reason="cost above capacity"} 1',
    ])
    await close()
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const told = lines.map((line) => JSON.parse(line))
    expect(told.map(({ outcome, api }) => [outcome, api])).toEqual([
      ['allowed', true],
      ['shadowed', true],
      ['shadowed', true],
      ['refused', true],
    ])
    rmSync(folder, { recursive: true })
  })

  it('explains what to send instead of an invalid cost', async () => {
    const { post } = await service()
    const range = 'must be a whole number from 0 to 1,000,000,000,000, got'
    const told = async (path: string, body: object) => {
      const { status, code, detail } = await post(path, body)
      return [status, code, detail]
    }
    const refund = 'To give units back, send POST /v1/refund.'
    const key = 'alice'
    expect(await told('/v1/check', { key, cost: -1 })).toEqual([
      ...[400, 'SLUICE_COST', `cost ${range} -1. ${refund}`],
    ])
    expect(await told('/v1/check', { checks: [{ key }, { key, cost: -2 }] })).toEqual([
      ...[400, 'SLUICE_COST', `checks.1.cost ${range} -2. ${refund}`],
    ])
    expect(await told('/v1/charge', { key, cost: -1 })).toEqual([
      ...[400, 'SLUICE_COST', `cost ${range} -1. ${refund}`],
    ])
    expect(await told('/v1/refund', { key, cost: -1 })).toEqual([
      ...[400, 'SLUICE_COST', `cost ${range} -1. To take units, send POST /v1/charge.`],
    ])
    for (const path of ['/v1/charge', '/v1/refund']) {
      for (const [body, code] of [
        [{ key }, 'SLUICE_OPTION'],
        [{ key, cost: 1.5 }, 'SLUICE_COST'],
        [{ key, cost: 1_000_000_000_001 }, 'SLUICE_COST'],
        [{ key: '', cost: 1 }, 'SLUICE_KEY'],
        [{ key, cost: 1, tier: 'none' }, 'SLUICE_TIER_UNKNOWN'],
        [{ key, cost: 1, route: 'none' }, 'SLUICE_OPTION'],
        [{ key, cost: 1, route: 'own', tier: 'pro' }, 'SLUICE_OPTION'],
        [{ key, cost: 1, extra: 1 }, 'SLUICE_OPTION'],
      ] as const) {
        expect([body, ...(await told(path, body))]).toEqual([body, 400, code, expect.any(String)])
      }
    }
  })

  it('lets tokens that may check also charge, and tokens that may reset also refund', async () => {
    const tokens = [
      { token: 'r'.repeat(20), access: 'read' },
      { token: 'f'.repeat(20), access: 'full' },
    ] as const
    const { post } = await service({ admin: { tokens } })
    const body = { key: 'alice', cost: 1 }
    const ask = async (path: string, headers = {}) => (await post(path, body, headers)).status
    const [read, full] = tokens.map(({ token }) => ({ authorization: `Bearer ${token}` }))
    expect([await ask('/v1/check'), await ask('/v1/charge')]).toEqual([200, 200])
    expect([await ask('/v1/refund'), await ask('/v1/refund', read)]).toEqual([401, 403])
    expect(await ask('/v1/refund', full)).toBe(200)
    const open = await service()
    const proxied = { 'x-forwarded-for': '192.0.2.1' }
    expect((await open.post('/v1/refund', body)).status).toBe(200)
    expect((await open.post('/v1/refund', body, proxied)).status).toBe(403)
  })

  it('answers charges while the store is down, as it answers checks', async () => {
    const away = { ...stores.redis(), urls: ['redis://127.0.0.1:1'], timeoutMs: 50 }
    const { check, post } = await service({ store: away })
    await check({ key: 'alice' })
    expect(await post('/v1/charge', { key: 'alice', cost: 3 })).toMatchObject({ status: 200 })
    expect(await check({ key: 'alice' })).toMatchObject({ remaining: 0, source: 'local' })
    expect(await post('/v1/refund', { key: 'alice', cost: 2 })).toMatchObject({ status: 200 })
    expect(await check({ key: 'alice' })).toMatchObject({ remaining: 1, source: 'local' })
    expect(await check({ key: 'alice', cost: 6 })).toMatchObject({ allowed: false, never: true })
  })

  it('answers as its OpenAPI description says', async () => {
    const { check, post, get } = await service()
    const { paths } = await get('/v1/openapi.json')
    const trusting = fastify({
      ajv: { customOptions: { coerceTypes: false, removeAdditional: false, strict: false } },
    })
    const paired = ['check', 'charge', 'refund'] as const
    for (const path of paired) {
      const { requestBody, responses } = paths[`/v1/${path}`].post
      const schemaOf = ({ content }: { content: Record<string, { schema: object }> }) =>
        content['application/json'].schema
      trusting.post(`/asked/${path}`, { schema: { body: schemaOf(requestBody) } }, () => 'fits')
      trusting.post(`/told/${path}`, { schema: { body: schemaOf(responses[200]) } }, () => 'fits')
    }
    const fits = async (url: string, payload: object) =>
      (await trusting.inject({ method: 'POST', url, payload })).body
    const seen: object[] = []
    const asked = [
      { key: 'alice', cost: 2 },
      { key: 'alice', cost: 6 },
      { key: 'alice', tier: 'internal' },
      { key: 'alice', route: 'trial', cost: 2 },
      { key: 'alice', route: 'trial', cost: 2 },
      { key: 'alice', route: 'trial', cost: 3 },
      { checks: [{ key: 'alice' }, { key: 'alice', cost: 9 }] },
    ]
    for (const body of asked) {
      expect([body, await fits('/asked/check', body)]).toEqual([body, 'fits'])
      const { status: _, ...answer } = await check(body)
      seen.push(answer)
      expect([answer, await fits('/told/check', answer)]).toEqual([answer, 'fits'])
    }
    expect(await fits('/told/check', { ...seen[0], more: 1 })).not.toBe('fits')
    expect(await fits('/told/check', { ...seen[0], allowed: 'yes' })).not.toBe('fits')
    for (const verb of ['charge', 'refund']) {
      const body = { key: 'alice', cost: 1 }
      const { status: _, ...answer } = await post(`/v1/${verb}`, body)
      expect(await fits(`/asked/${verb}`, body)).toBe('fits')
      expect([answer, await fits(`/told/${verb}`, answer)]).toEqual([answer, 'fits'])
      expect(await fits(`/asked/${verb}`, { key: 'alice' })).not.toBe('fits')
    }
  })
})

describe('forward auth', () => {
  it('refuses a cost that can never pass, without Retry-After', async () => {
    const overrides = { 'x-user:bob': [parseRule('1/1h')] }
    const { apiUrl } = await start(settingsOf({ overrides }, [{ cost: 2 }]))
    const asked = as('bob', { headers: { 'x-forwarded-uri': '/' } })
    for (const [query, status] of [
      ['', 429],
      ['?refuse=403', 403],
    ] as const) {
      const response = await fetch(`${apiUrl}/v1/auth${query}`, asked)
      expect([response.status, response.headers.get('retry-after')]).toEqual([status, null])
      const { detail } = (await response.json()) as { detail: string }
      expect(detail).toContain('can never pass')
      expect(detail).not.toMatch(/raise|burst|queue/)
    }
  })
})
