import { handle } from './app.ts'

/** The program as Cloudflare Workers have it. */
export default { fetch: (request: Request) => handle(request) }
