// Plain http with a leaky bucket: five requests per second, evenly spaced. Up to four wait, others
// are refused.
import { createServer } from 'node:http'
import { leakyBucket } from 'sluice'
import { rateLimit } from 'sluice/node'

const limit = rateLimit({ rules: leakyBucket({ limit: 5, per: '1s', queue: 4 }) })

const server = createServer((request, response) =>
  limit(request, response, () => response.end('hello')),
)
server.listen(process.env.PORT ?? 3000, () => {
  console.log(`http://localhost:${server.address().port}`)
})
