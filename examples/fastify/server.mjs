// Ten units per minute. A search costs three, and the health check is not limited.
import fastify from 'fastify'
import { tokenBucket } from 'sluice'
import { rateLimit } from 'sluice/fastify'

const app = fastify()
await app.register(rateLimit({ rules: tokenBucket({ limit: 10, per: '1m' }) }))

app.get('/', () => 'hello')
app.get('/search', { config: { rateLimit: { cost: 3 } } }, () => 'found')
app.get('/health', { config: { rateLimit: false } }, () => 'well')

console.log(await app.listen({ port: process.env.PORT ?? 3000 }))
