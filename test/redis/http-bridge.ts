import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Redis } from 'ioredis'

/** HttpBridge serves a Redis by Upstash's REST protocol. */
export interface HttpBridge {
  readonly url: string
  readonly token: string
  /** Returns the number of HTTP requests so far. */
  requests(): number
  close(): Promise<void>
}

type Reply = { readonly result: unknown } | { readonly error: string }

/** startHttpBridge serves one command at `/`, and a list of them at `/pipeline`. */
export async function startHttpBridge(client: Redis): Promise<HttpBridge> {
  const token = 'secret'
  let requests = 0

  async function answer(request: IncomingMessage): Promise<[status: number, body: unknown]> {
    requests += 1
    const isBase64 = request.headers['upstash-encoding'] === 'base64'
    if (request.headers.authorization !== `Bearer ${token}`) {
      return [401, { error: 'WRONGPASS invalid or missing auth token' }]
    }
    const body = JSON.parse(await text(request))
    if (request.url === '/pipeline') {
      return [200, await Promise.all(body.map((words: string[]) => run(words, isBase64)))]
    }
    const reply = await run(body, isBase64)
    return ['error' in reply ? 400 : 200, reply]
  }

  async function run([command, ...args]: string[], isBase64: boolean): Promise<Reply> {
    try {
      const result = await client.call(command, args)
      return { result: isBase64 ? encoded(result) : result }
    } catch (error) {
      return { error: (error as Error).message }
    }
  }

  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    token,
    requests: () => requests,
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** Encodes all texts of a reply in base64, except OK, as Upstash does. */
function encoded(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(encoded)
  if (typeof reply !== 'string' || reply === 'OK') return reply
  return Buffer.from(reply).toString('base64')
}
