// A store for memcached: rows by `gets`, swaps by `cas`. docs/guide/add-a-store.md explains it.
import { createHash } from 'node:crypto'
import { createConnection } from 'node:net'
import { remoteStore } from 'sluice/remote'

/** How much the clocks of nodes and memcached may differ: rows are kept longer by this. */
const SKEW_S = 60

/** The latest expiry that memcached accepts. */
const LATEST_S = 2 ** 31 - 1

/**
 * memcachedStore keeps rows in one memcached server, which reports no clock and swaps single rows.
 * @param {{ port?: number, host?: string }} server
 * @param {import('sluice/remote').RemoteStoreOptions} [options]
 */
export function memcachedStore({ port = 11_211, host = '127.0.0.1' }, options) {
  const ask = connect(port, host)
  /** @type {import('sluice/remote').RemoteRows} */
  const rows = {
    atomic: 'row',
    time: 'caller',

    async read(names) {
      const keys = names.map(keyOf)
      const { values } = await ask(`gets ${keys.join(' ')}\r\n`)
      const found = keys.map((key) => values.find((value) => value.key === key))
      return {
        texts: found.map((value) => value?.text ?? null),
        versions: found.map((value) => value?.version),
      }
    },

    async swap([{ name, from, version, to, expiresMs }]) {
      const text = to ?? ''
      // A deleted row expires at once.
      const expiresS = to === null ? -1 : Math.min(Math.ceil(expiresMs / 1_000) + SKEW_S, LATEST_S)
      const head = `${keyOf(name)} 0 ${expiresS} ${text.length}`
      const command = from === null ? `add ${head}` : `cas ${head} ${version}`
      const { line } = await ask(`${command}\r\n${text}\r\n`)
      if (/^(STORED|EXISTS|NOT_STORED|NOT_FOUND)$/.test(line)) return line === 'STORED'
      throw new Error(`memcached: ${line}`)
    },
  }
  return remoteStore(rows, options)
}

/** Returns a memcached key: up to 250 printable characters, or a hash of any other name. */
function keyOf(name) {
  if (/^[\x21-\x7e]{1,250}$/.test(name)) return name
  return `#${createHash('sha256').update(name).digest('hex')}`
}

/** Sends commands on one connection, reopens it after a loss, and reads the replies in order. */
function connect(port, host) {
  let socket
  const waiting = []

  function open() {
    let unread = ''
    let values = []
    socket = createConnection({ port, host, noDelay: true }).setEncoding('latin1')
    socket.on('data', (data) => {
      unread += data
      for (let end = unread.indexOf('\r\n'); end >= 0; end = unread.indexOf('\r\n')) {
        const line = unread.slice(0, end)
        const [kind, key, , size, version] = line.split(' ')
        const next = end + 2
        if (kind === 'VALUE') {
          const after = next + Number(size) + 2
          if (unread.length < after) return
          values.push({ key, version, text: unread.slice(next, after - 2) })
          unread = unread.slice(after)
        } else {
          waiting.shift()?.resolve({ line, values })
          values = []
          unread = unread.slice(next)
        }
      }
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      socket = undefined
      const error = new Error('the connection to memcached was lost')
      for (const { reject } of waiting.splice(0)) reject(error)
    })
  }

  return (command) =>
    new Promise((resolve, reject) => {
      if (!socket) open()
      waiting.push({ resolve, reject })
      socket.write(command, 'latin1')
    })
}
