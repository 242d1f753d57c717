// Tiers by API key: free clients have 3 requests per minute, paying ones 30. Others count by address.
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { apiKey, createPolicy, tokenBucket } from 'sluice'
import { rateLimit } from 'sluice/hono'

const tiers = new Map([
  ['key-of-alice', 'pro'],
  ['key-of-bob', 'free'],
])
/** Unknown API keys are ignored: their clients are counted by address. */
const keyOf = (c) => (tiers.has(c.req.header('x-api-key')) ? c.req.header('x-api-key') : undefined)

const app = new Hono()
app.use(
  rateLimit({
    policy: createPolicy({
      tiers: {
        free: tokenBucket({ limit: 3, per: '1m' }),
        pro: tokenBucket({ limit: 30, per: '1m' }),
      },
      tierOf: () => 'free',
    }),
    key: apiKey(keyOf),
    tier: (c) => tiers.get(keyOf(c)),
  }),
)
app.get('/', (c) => c.text('hello'))

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, ({ port }) => {
  console.log(`http://localhost:${port}`)
})
