// `tsc --build` checks what compiles and what does not; the tests check that bad calls also throw.
import { createLimiter, createPolicy, fixedWindow, tokenBucket } from 'sluice'
import { rateLimit as forExpress } from 'sluice/express'
import { rateLimit as forFastify } from 'sluice/fastify'
import { rateLimit as forFetch } from 'sluice/fetch'
import { rateLimit as forHono } from 'sluice/hono'
import { rateLimit as forKoa } from 'sluice/koa'
import { rateLimit as forNest, RateLimit } from 'sluice/nest'
import { rateLimit as forNode } from 'sluice/node'
import { describe, expect, it } from 'vitest'

const rules = tokenBucket({ limit: 5, per: '1m' })
const fields = [
  tokenBucket({ limit: 5, per: '1m', by: 'user', name: 'requests' }),
  tokenBucket({ limit: 500, per: '1m', by: 'address', name: 'bytes' }),
  fixedWindow({ limit: 50, per: '1m', by: 'global', name: 'everyone' }),
] as const
const limiter = createLimiter(fields)
const policy = createPolicy({ tiers: { free: [rules] }, defaultTier: 'free' })

/** What Next.js passes to handlers. */
interface NextRequest extends Request {
  readonly nextUrl: URL
}
interface Context {
  readonly params: Promise<{ readonly id: string }>
}
/** What Bun passes to them. */
interface Server {
  requestIP(request: Request): { readonly address: string } | null
}

describe('rateLimit', () => {
  it('takes one of limiter, rules and policy', () => {
    for (const make of [
      // @ts-expect-error
      () => forExpress({}),
      // @ts-expect-error
      () => forFastify({}),
      // @ts-expect-error
      () => forFetch({}),
      // @ts-expect-error
      () => forHono({}),
      // @ts-expect-error
      () => forKoa({}),
      // @ts-expect-error
      () => forNest({}),
      // @ts-expect-error
      () => RateLimit({}),
      // @ts-expect-error
      () => forNode({}),
      // @ts-expect-error
      () => forNode({ key: () => 'alice' }),
      // @ts-expect-error
      () => forNode({ rules, policy }),
      // @ts-expect-error
      () => forExpress({ limiter, rules }),
      // @ts-expect-error
      () => forExpress({ rules, keyGenerator: () => 'alice' }),
      // @ts-expect-error
      () => forExpress({ rules, tier: () => 'free' }),
      // @ts-expect-error
      () => forExpress(rules),
      // @ts-expect-error
      () => forExpress({ rules, headers: ['draft-8'] }),
      // @ts-expect-error
      () => forExpress({ rules, trustProxy: true }),
    ]) {
      expect(make).toThrow(/^rateLimit: /)
    }
    for (const given of [{ limiter, key: () => ({ user: 'alice' }) }, { rules }, { policy }]) {
      expect(forExpress(given)).toBeTypeOf('function')
      expect(forFastify(given)).toBeTypeOf('function')
      expect(forKoa(given)).toBeTypeOf('function')
    }
  })

  it('takes the keys and costs of its rules', () => {
    // The address is filled in.
    forExpress({
      rules: fields,
      key: (request) => ({ user: request.get('x-user') ?? 'anonymous' }),
    })
    forHono({ rules: fields, key: () => ({ user: null, address: '192.0.2.1' }) })
    forKoa({ rules: fields, key: async () => ({ user: 'alice' }) })
    forNode({ rules: [fields[1], fields[2]], key: () => undefined })
    // @ts-expect-error a misspelt field
    forExpress({ rules: fields, key: () => ({ usr: 'alice' }) })
    // @ts-expect-error a part that may be missing
    forExpress({ rules: fields, key: (request) => ({ user: request.get('x-user') }) })
    // @ts-expect-error a string key for rules with fields
    forExpress({ rules: fields, key: () => 'alice' })
    // @ts-expect-error a key with fields for rules without
    forExpress({ rules, key: () => ({ user: 'alice' }) })
    // @ts-expect-error a number
    forExpress({ rules, key: () => 42 })

    const key = () => ({ user: 'alice' })
    const cost = { requests: 1, bytes: () => 5, everyone: async () => 1 }
    forExpress({ rules: fields, key, cost })
    forExpress({ rules: fields, key, cost: () => ({ requests: 1, bytes: 2, everyone: 1 }) })
    forExpress({ rules: fields, key, cost: 2, finalCost: () => ({ bytes: 1 }) })
    // @ts-expect-error a rule is missing
    forExpress({ rules: fields, key, cost: { requests: 1, bytes: 1 } })
    // @ts-expect-error a misspelt rule
    forExpress({ rules: fields, key, cost: { ...cost, byte: 1 } })
    // @ts-expect-error a misspelt rule
    forExpress({ rules: fields, key, finalCost: () => ({ byte: 1 }) })
  })

  it('accepts the results of onLimited, synchronous or asynchronous', () => {
    forFetch({ rules, onLimited: () => {} })
    forFetch({ rules, onLimited: async () => {} })
    forFetch({ rules, onLimited: () => ({ body: { error: 'slow down' } }) })
    forFetch({ rules, onLimited: async () => ({ status: 503, fields: [['x-a', 'b']] }) })
    // @ts-expect-error a misspelt name
    forFetch({ rules, onLimited: () => ({ stauts: 503 }) })
    // @ts-expect-error a Response
    forFetch({ rules, onLimited: () => new Response('slow down') })
  })
})

describe('rateLimit of fetch handlers', () => {
  it('has the types of its handler', async () => {
    const limited = forFetch({ rules, key: () => 'alice' })
    const GET = limited(async ({ nextUrl }: NextRequest, { params }: Context) =>
      Response.json([nextUrl.pathname, (await params).id]),
    )
    const typed: (request: NextRequest, context: Context) => Promise<Response> = GET
    const url = 'https://a.example/b'
    const request = Object.assign(new Request(url), { nextUrl: new URL(url) })
    const response = await typed(request, { params: Promise.resolve({ id: '7' }) })
    expect(await response.json()).toEqual(['/b', '7'])
    // @ts-expect-error the context is missing
    await expect(GET(request)).rejects.toThrow()
    // @ts-expect-error not what Next.js passes
    await expect(GET(new Request(url), { params: Promise.resolve({ id: '7' }) })).rejects.toThrow()
    const plain: (request: Request) => Promise<Response> = limited(() => new Response('hello'))
    expect((await plain(new Request(url))).status).toBe(200)
  })

  it('is called with the arguments that address reads, even if the handler takes fewer', async () => {
    const limited = forFetch({
      rules,
      address: (request, server: Server) => server.requestIP(request)?.address,
    })
    const server: Server = { requestIP: () => ({ address: '192.0.2.1' }) }
    const short = limited(() => new Response('hello'))
    const long = limited((_request, given: Server, text: string) =>
      Response.json([given === server, text]),
    )
    const request = new Request('https://a.example')
    expect((await short(request, server)).status).toBe(200)
    expect(await (await long(request, server, 'more')).json()).toEqual([true, 'more'])
    // @ts-expect-error the server is missing
    await expect(short(request)).rejects.toThrow()
  })
})
