// Any platform with Request and Response can serve route.mjs. This one is Node.
import { serve } from '@hono/node-server'
import { GET } from './route.mjs'

serve({ fetch: (request) => GET(request), port: Number(process.env.PORT ?? 3000) }, ({ port }) => {
  console.log(`http://localhost:${port}`)
})
