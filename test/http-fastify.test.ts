import fastify, { type FastifyInstance } from 'fastify'
import { compositeKey, createPolicy, tokenBucket } from 'sluice'
import { type FastifyOptions, rateLimit } from 'sluice/fastify'
import { afterEach, describe, expect, it } from 'vitest'

const rules = tokenBucket({ limit: 1, per: '1h' })
const policy = createPolicy({ tiers: { free: rules }, defaultTier: 'free' })
const hooks = ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const

interface Login {
  readonly user?: string
}
const userOf = (request: { readonly body: unknown }) => (request.body as Login | undefined)?.user

let app: FastifyInstance
afterEach(() => app.close())

/** Returns the statuses of logins of these users, one after another. */
async function logins(users: readonly (string | undefined)[]): Promise<number[]> {
  const statuses: number[] = []
  for (const user of users) {
    const { statusCode } = await app.inject({ method: 'POST', url: '/login', payload: { user } })
    statuses.push(statusCode)
  }
  return statuses
}

async function served(options: FastifyOptions, own?: Partial<FastifyOptions>) {
  app = fastify()
  await app.register(rateLimit(options))
  app.post('/login', { config: { rateLimit: own as never } }, () => 'hello')
  app.get('/', () => 'hello')
}

describe('the hook that requests are counted in', () => {
  it.each(hooks)('is %s', async (hook) => {
    await served({ rules, hook })
    expect(await logins(['alice', 'alice'])).toEqual([200, 429])
    expect((await app.inject('/nowhere')).statusCode).toBe(429)
  })

  it.each(['preValidation', 'preHandler'] as const)('%s has bodies for keys', async (hook) => {
    await served({ rules, hook, key: (request) => compositeKey('user', userOf(request) ?? '') })
    expect(await logins(['alice', 'bob', 'alice', 'bob'])).toEqual([200, 200, 429, 429])
  })

  it('can be set by a route', async () => {
    await served({ rules }, { hook: 'preHandler', key: userOf })
    expect(await logins(['alice', 'bob', 'alice'])).toEqual([200, 200, 429])
    const statuses = [await app.inject('/'), await app.inject('/')].map((each) => each.statusCode)
    expect(statuses).toEqual([200, 429])
  })

  it('runs after the hooks of the route itself', async () => {
    app = fastify()
    await app.register(rateLimit({ rules }))
    const own = { hook: 'preHandler', key: (request: object) => (request as Login).user } as const
    app.get('/', {
      config: { rateLimit: { rules, ...own } },
      preHandler: async (request) => {
        Object.assign(request, { user: request.headers['x-user'] })
      },
      handler: () => 'hello',
    })
    const ask = async (user: string, method: 'GET' | 'HEAD') =>
      (await app.inject({ method, url: '/', headers: { 'x-user': user } })).statusCode
    expect([await ask('a', 'HEAD'), await ask('b', 'GET'), await ask('b', 'GET')]).toEqual([
      200, 200, 429,
    ])
  })

  it('is an error if it is invalid, or set by a route registered before the plugin', async () => {
    app = fastify()
    expect(() => rateLimit({ rules, hook: 'onSend' as never })).toThrow(/got "onSend"/)
    app.post('/login', { config: { rateLimit: { rules, hook: 'preHandler' } } }, () => 'hello')
    await app.register(rateLimit({ rules }))
    const { body } = await app.inject({ method: 'POST', url: '/login' })
    expect(body).toContain('before the routes')
  })
})

describe('a body that is not parsed yet', () => {
  it.each<[string, Partial<FastifyOptions>]>([
    ['key', { key: userOf }],
    ['key', { key: (request) => `user:${userOf(request)}` }],
    ['key', { key: async (request) => userOf(await Promise.resolve(request)) }],
    ['tier', { rules: undefined, policy, tier: userOf }],
    ['skip', { skip: (request) => userOf(request) === 'root' }],
    ['cost', { cost: (request) => (request.body as string).length }],
    ['cost', { cost: { 'token-bucket': (request) => (request.body as string).length } }],
  ])('is an error for %s to read', async (name, options) => {
    for (const hook of ['onRequest', 'preParsing'] as const) {
      await served({ rules, hook, ...options } as FastifyOptions)
      const { statusCode, body } = await app.inject({
        method: 'POST',
        url: '/login',
        payload: { user: 'alice' },
      })
      expect(statusCode).toBe(500)
      expect(body).toContain(`${name} reads request.body`)
      expect(body).toContain("Give `hook: 'preHandler'`")
      await app.close()
    }
  })

  it('is available to the handler, and undefined for a request without one', async () => {
    app = fastify()
    await app.register(rateLimit({ rules, key: ({ headers }) => String(headers['x-user']) }))
    app.post('/', ({ body }) => body)
    const payload = { user: 'alice' }
    expect((await app.inject({ method: 'POST', url: '/', payload })).json()).toEqual(payload)
    await app.close()
    await served({ rules, key: (request) => userOf(request) ?? 'anonymous' })
    expect((await app.inject('/')).statusCode).toBe(200)
  })
})
