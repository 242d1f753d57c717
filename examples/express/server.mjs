// 20 requests per minute and client, and five wrong passwords per hour and user name.
import express from 'express'
import { fixedWindow, tokenBucket } from 'sluice'
import { rateLimit } from 'sluice/express'

const app = express()
app.use(rateLimit({ rules: tokenBucket({ limit: 20, per: '1m' }) }))
app.get('/', (_request, response) => response.send('hello'))

const wrongPasswords = rateLimit({
  rules: fixedWindow({ limit: 5, per: '1h', name: 'wrong-passwords' }),
  key: (request) => `user:${request.params.user}`,
  // Each attempt spends a unit before the password is checked. A correct password refunds it.
  finalCost: (_request, response) => (response.statusCode === 200 ? 0 : 1),
})
app.post('/login/:user', wrongPasswords, (request, response) => {
  const isRight = request.get('x-password') === 'secret'
  response.status(isRight ? 200 : 401).send(isRight ? 'welcome' : 'wrong')
})

const server = app.listen(process.env.PORT ?? 3000, () => {
  console.log(`http://localhost:${server.address().port}`)
})
