import type { Redis } from 'ioredis'
import type { Fault, Scene } from './chaos.ts'
import {
  viaHastyIoredis,
  viaNodeRedis,
  viaQueueingIoredis,
  viaQueueingNodeRedis,
} from './clients.ts'
import type { ProxyFault } from './proxy.ts'

/** How often connections are killed: before a client has finished its handshake. */
const KILL_EVERY_MS = 2

/** Number of keys to load; the server is configured to take a millisecond for each. */
const MANY_KEYS = 700

const UNANSWERED = /did not answer|too busy/

const UNCONNECTED = /writeable|closed|ECONN|retries|offline/i

/** stopped is a server that is stopped (SIGSTOP) with all its connections. */
export const stopped: Fault = {
  name: 'a server that is stopped',
  shows: UNANSWERED,
  begin: ({ server }) => server.process.kill('SIGSTOP'),
  end: ({ server }) => server.process.kill('SIGCONT'),
}

/** lost is a server that dies and restarts empty. */
export const lost: Fault = {
  name: 'a server that dies and starts again empty',
  shows: UNCONNECTED,
  losesData: true,
  begin: ({ server }) => server.kill(),
  end: ({ server }) => server.start(),
}

const queued: Fault = {
  ...lost,
  name: 'a server that dies and starts again empty, with clients that queue commands',
  shows: UNANSWERED,
  clients: [viaQueueingIoredis, viaQueueingNodeRedis],
}

const saved: Fault = {
  name: 'a server that restarts and keeps its data',
  shows: UNCONNECTED,
  async begin({ admin, server }) {
    await admin.save()
    await server.kill()
  },
  end: ({ server }) => server.start(),
}

const killed: Fault = {
  name: 'connections that are killed repeatedly',
  shows: UNCONNECTED,
  ...repeated(({ admin }) => admin.call('CLIENT', ['KILL', 'TYPE', 'normal', 'SKIPME', 'yes'])),
}

const full: Fault = {
  name: 'a server whose memory is full',
  shows: /OOM/,
  options: ['--maxmemory-policy', 'noeviction'],
  async begin({ admin }) {
    await admin.set('ballast', Buffer.alloc(4 << 20))
    await admin.config('SET', 'maxmemory', '3mb')
  },
  end: ({ admin }) => admin.del('ballast'),
}

const readOnly: Fault = {
  name: 'a server that becomes a read-only replica',
  shows: /READONLY/,
  options: ['--replica-read-only', 'yes'],
  begin: ({ admin }) => admin.replicaof('127.0.0.1', 1),
  end: ({ admin }) => admin.replicaof('NO', 'ONE'),
}

function loading(): Fault {
  let loaded: Promise<void>
  return {
    name: 'a server that loads its data',
    shows: /LOADING/,
    // While loading, it serves other clients each time it has read this many bytes.
    options: [
      ...['--key-load-delay', '1000'],
      ...['--loading-process-events-interval-bytes', '1024'],
      ...['--rdbcompression', 'no'],
    ],
    clients: [viaHastyIoredis, viaNodeRedis],
    async begin({ admin, server }) {
      await fill(admin)
      await admin.save()
      await server.kill()
      loaded = server.start()
    },
    end: () => loaded,
  }
}

const unborn: Fault = {
  name: 'a server that is not there at first',
  shows: UNCONNECTED,
  atBoot: true,
  begin: () => {},
  end: ({ server }) => server.start(),
}

/** faults lists all faults. Each runs on its own fleet. */
export const faults: readonly Fault[] = [
  stopped,
  lost,
  queued,
  saved,
  killed,
  full,
  readOnly,
  loading(),
  unborn,
  onTheWay('replies that are 200 ms late', 'delay', UNANSWERED),
  onTheWay('replies that are lost', 'swallow', UNANSWERED),
  onTheWay('connections that end in the middle of a reply', 'cut', UNCONNECTED),
]

function onTheWay(name: string, fault: ProxyFault, shows: RegExp): Fault {
  return {
    name,
    shows,
    proxied: true,
    begin: ({ proxy }) => proxy.suffer(fault),
    end: ({ proxy }) => proxy.heal(),
  }
}

/** Creates a fault that repeats an action until it ends. */
function repeated(once: (scene: Scene) => Promise<unknown>): Pick<Fault, 'begin' | 'end'> {
  let timer: NodeJS.Timeout
  let last: Promise<unknown>
  return {
    begin(scene) {
      const again = () => {
        last = once(scene)
      }
      timer = setInterval(again, KILL_EVERY_MS)
      again()
    },
    async end() {
      clearInterval(timer)
      await last
    },
  }
}

async function fill(admin: Redis): Promise<void> {
  const names = Array.from({ length: MANY_KEYS }, (_, i) => [`ballast ${i}`, '.'.repeat(100)])
  await admin.mset(names.flat())
}
