import { handle } from './app.ts'

/** The program in the form of a Cloudflare Worker. */
export default { fetch: (request: Request) => handle(request) }
