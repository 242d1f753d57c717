import { Redis } from '@upstash/redis/cloudflare'
import { Hono } from 'hono'
import {
  compactStore,
  createLimiter,
  fixedWindow,
  memoryStore,
  systemClock,
  tokenBucket,
} from 'sluice'
import { rateLimit } from 'sluice/fetch'
import { rateLimit as honoRateLimit } from 'sluice/hono'
import { redisStore } from 'sluice/redis'
import { manualClock } from '../../packages/sluice/src/testing/manual-clock.ts'
import { type MakeStore, storeSuite } from '../../packages/sluice/src/testing/store-suite.ts'

// The following is at module scope on purpose: Workers have no random values, time or timers
// there.
const atModuleScope = [memoryStore(), compactStore()].map((store) =>
  createLimiter(tokenBucket({ limit: 3, per: '300ms' }), { store }),
)
const rules = fixedWindow({ limit: 3, per: '1h' })
const key = () => 'everyone'
const limited = rateLimit({ rules, key })(() => new Response('fetch'))
const hono = new Hono()
hono.use(honoRateLimit({ rules, key }))
hono.get('*', (c) => c.text('hono'))

const stores: Record<string, { make: MakeStore; without: string[] }> = {
  memory: {
    make: (options) => {
      const clock = manualClock()
      return { clock, store: memoryStore({ clock, ...options }) }
    },
    without: [],
  },
  compact: {
    make: (options) => {
      const clock = manualClock()
      return { clock, store: compactStore({ clock, ...options }) }
    },
    without: ['sliding-window-log'],
  },
}

/** Suite is the result of a conformance suite. */
export interface Suite {
  readonly passed: number
  readonly failures: readonly string[]
}

/** suiteOn runs all cases of the conformance suite. */
export async function suiteOn(make: MakeStore, options: object): Promise<Suite> {
  const failures: string[] = []
  const cases = storeSuite(make, options)
  for (const { name, run } of cases) {
    await run().catch((error: unknown) => void failures.push(`${name}: ${error}`))
  }
  return { passed: cases.length - failures.length, failures }
}

/** Tries limiters made at module scope: their burst, a wait for one unit, and the time. */
async function firstCalls(): Promise<unknown> {
  const all = await Promise.all(
    atModuleScope.map(async (limiter) => {
      const burst = [1, 2, 3, 4].map(() => limiter.allow('a'))
      const fromMs = Date.now()
      await limiter.wait('a')
      return { burst, waitedMs: Date.now() - fromMs }
    }),
  )
  return { all, offMs: systemClock.nowUs() / 1_000 - Date.now() }
}

/** Returns how many of 30 simultaneous calls a limit of 10 admits in a Redis over HTTP. */
async function overHttp(url: string, token: string): Promise<number> {
  const store = redisStore(new Redis({ url, token, retry: false }))
  const limiter = createLimiter(fixedWindow({ limit: 10, per: '1h' }), {
    ...{ store, name: crypto.randomUUID(), timeoutMs: 10_000 },
  })
  const decisions = await Promise.all(Array.from({ length: 30 }, () => limiter.check('a')))
  await limiter.close()
  return decisions.filter(({ allowed, source }) => allowed && source === 'store').length
}

/** handle is the program that every runtime serves. */
export async function handle(request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url)
  if (pathname === '/fetch') return limited(request)
  if (pathname === '/hono') return hono.fetch(request)
  if (pathname === '/first-calls') return Response.json(await firstCalls())
  if (pathname === '/over-http') {
    const { url, token } = await request.json()
    return Response.json(await overHttp(url, token))
  }
  const { make, without } = stores[pathname.slice(1)]
  const steps = Number(searchParams.get('steps'))
  return Response.json(await suiteOn(make, { without, steps, seed: 1 }))
}
