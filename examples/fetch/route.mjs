// A handler from Request to Response, as in Next.js, Bun, Deno and Workers.
import { tokenBucket } from 'sluice'
import { rateLimit } from 'sluice/fetch'

const limited = rateLimit({
  rules: tokenBucket({ limit: 3, per: '1m' }),
  // The platform's one proxy passes the client's address.
  trustProxy: 1,
})

export const GET = limited((request) => Response.json({ path: new URL(request.url).pathname }))
