import { createServer } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'
import { createLimiter, tokenBucket } from 'sluice'
import { attachSharedMemory } from 'sluice/shared-memory'

const store = attachSharedMemory(workerData)
const limiter = createLimiter(tokenBucket({ limit: 100, per: '1h' }), { store })

const server = createServer((request, response) => {
  const { allowed, remaining, retryAfterMs } = limiter.check(request.socket.remoteAddress ?? '')
  if (!allowed) response.setHeader('retry-after', Math.ceil(retryAfterMs / 1_000))
  response.writeHead(allowed ? 200 : 429).end(`${remaining} left\n`)
})
// Its own port. From Node 22.12 on, on Linux, all threads can share one: { port: 8080, reusePort:
// true }.
server.listen(0, '127.0.0.1', () => parentPort?.postMessage(server.address().port))
