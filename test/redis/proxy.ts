import { createServer, type Socket, connect as toPort } from 'node:net'

/** How long a delayed reply is held back. */
const DELAY_MS = 200

/** What a proxy does to replies: delay them, drop them, or close the connection within one. */
export type ProxyFault = 'delay' | 'swallow' | 'cut'

/** FaultyProxy is a proxy between clients and a server that can inject faults into replies. */
export interface FaultyProxy {
  readonly port: number
  /** Applies a fault to all replies from now on. */
  suffer(fault: ProxyFault): void
  /** Lets all replies pass again. Sends delayed ones, and closes connections that lack replies. */
  heal(): void
  close(): Promise<void>
}

/** One connection through the proxy. */
interface Line {
  reply(bytes: Buffer, fault: ProxyFault | undefined): void
  heal(): void
  end(): void
}

/** startProxy listens on a free port and forwards everything to a server. */
export async function startProxy(serverPort: number): Promise<FaultyProxy> {
  const lines = new Set<Line>()
  let fault: ProxyFault | undefined

  const listener = createServer((client) => {
    const server = toPort(serverPort, '127.0.0.1')
    const line = createLine(client, server)
    lines.add(line)
    client.on('data', (bytes) => server.write(bytes))
    server.on('data', (bytes) => line.reply(bytes, fault))
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        line.end()
        lines.delete(line)
      })
    }
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))

  return {
    port: (listener.address() as { port: number }).port,
    suffer(next) {
      fault = next
    },
    heal() {
      fault = undefined
      for (const line of lines) line.heal()
    },
    async close() {
      const closed = new Promise((resolve) => listener.close(resolve))
      for (const line of lines) line.end()
      await closed
    },
  }
}

function createLine(client: Socket, server: Socket): Line {
  const held = new Set<{ bytes: Buffer; timer: NodeJS.Timeout }>()
  let isTorn = false

  function end(): void {
    for (const { timer } of held) clearTimeout(timer)
    held.clear()
    server.destroy()
    // Flush written data first.
    client.destroySoon()
  }

  function hold(bytes: Buffer): void {
    const timer = setTimeout(() => {
      held.delete(reply)
      client.write(bytes)
    }, DELAY_MS)
    const reply = { bytes, timer }
    held.add(reply)
  }

  return {
    reply(bytes, fault) {
      if (fault === 'delay') {
        hold(bytes)
      } else if (fault === 'swallow') {
        isTorn = true
      } else if (fault === 'cut' && isDecision(bytes)) {
        client.write(bytes.subarray(0, Math.ceil(bytes.length / 2)))
        end()
      } else {
        client.write(bytes)
      }
    },
    heal() {
      for (const { bytes, timer } of held) {
        clearTimeout(timer)
        client.write(bytes)
      }
      held.clear()
      if (isTorn) end()
    },
    end,
  }
}

/** Tells whether data are the reply of a script, which is a list, unlike replies to a handshake. */
function isDecision(bytes: Buffer): boolean {
  return bytes[0] === '*'.charCodeAt(0)
}
