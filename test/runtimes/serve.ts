import { serve } from '@hono/node-server'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { sharedMemoryStore } from 'sluice/shared-memory'
import { manualClock } from '../../packages/sluice/src/testing/manual-clock.ts'
import { timedStore } from '../redis/timed.ts'
import { handle, type Suite, suiteOn } from './app.ts'

/** Handles requests with the features that only servers have. */
async function handleHere(request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url)
  const steps = Number(searchParams.get('steps'))
  const port = Number(searchParams.get('port'))
  if (pathname === '/shared-memory') return Response.json(await sharedMemory(steps))
  if (pathname === '/ioredis') return Response.json(await viaIoredis(port, steps))
  if (pathname === '/node-redis') return Response.json(await viaNodeRedis(port, steps))
  return handle(request)
}

function sharedMemory(steps: number): Promise<Suite> {
  const make = (options?: object) => {
    const clock = manualClock()
    return {
      clock,
      store: sharedMemoryStore({ clock, maxKeys: 10_000, maxBytes: 2 ** 26, ...options }),
    }
  }
  const without = ['sliding-window-log']
  return suiteOn(make, { without, steps, seed: 1, fields: 'in turn' })
}

const onRedis = { evicts: false, seed: 1 }

async function viaIoredis(port: number, steps: number): Promise<Suite> {
  const client = new Redis(port, '127.0.0.1')
  try {
    await client.flushall()
    return await suiteOn(() => timedStore(client), { ...onRedis, steps })
  } finally {
    client.disconnect()
  }
}

async function viaNodeRedis(port: number, steps: number): Promise<Suite> {
  const client = createClient({ socket: { host: '127.0.0.1', port } })
  await client.connect()
  const words = {
    set: (name: string, text: string) => client.sendCommand(['SET', name, text]),
    call: (command: string, args: string[]) => client.sendCommand([command, ...args]),
  }
  try {
    await client.flushAll()
    return await suiteOn(() => timedStore(words as never), { ...onRedis, steps })
  } finally {
    client.destroy()
  }
}

interface Runtimes {
  readonly Bun?: { serve(options: object): { readonly port: number } }
  readonly Deno?: {
    serve(options: object, handler: (request: Request) => Promise<Response>): unknown
  }
}

const told = (port: number) => console.log(`listening on ${port}`)
const { Bun, Deno } = globalThis as Runtimes
const where = { hostname: '127.0.0.1', port: 0 }
if (Bun) {
  told(Bun.serve({ ...where, idleTimeout: 0, fetch: handleHere }).port)
} else if (Deno) {
  Deno.serve({ ...where, onListen: ({ port }: { port: number }) => told(port) }, handleHere)
} else {
  serve({ ...where, fetch: handleHere }, ({ port }) => told(port))
}
