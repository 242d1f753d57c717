// A handler from Request to Response, as Next.js, Bun, Deno and Workers have them.
import { tokenBucket } from 'sluice'
import { rateLimit } from 'sluice/fetch'

const limited = rateLimit({
  rules: tokenBucket({ limit: 3, per: '1m' }),
  // The platform's proxy, of which there is one, says where a request comes from.
  trustProxy: 1,
})

export const GET = limited((request) => Response.json({ path: new URL(request.url).pathname }))
