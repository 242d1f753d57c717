// Two rules in one decision: bursts of 5, and 100 per day. A refusal charges neither.
import Koa from 'koa'
import { fixedWindow, tokenBucket } from 'sluice'
import { rateLimit } from 'sluice/koa'

const app = new Koa()
app.use(
  rateLimit({
    rules: [
      tokenBucket({ limit: 60, per: '1m', burst: 5, name: 'burst' }),
      fixedWindow({ limit: 100, per: '1d', name: 'day' }),
    ],
    headers: ['draft-11'],
  }),
)
app.use((context) => {
  context.body = 'hello'
})

const server = app.listen(process.env.PORT ?? 3000, () => {
  console.log(`http://localhost:${server.address().port}`)
})
