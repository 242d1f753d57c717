// @ts-check
import { spawn, spawnSync } from 'node:child_process'
import { createServer } from 'node:net'

/** startServer starts a redis-server or valkey-server for the benchmark, without persistence. */
export async function startServer() {
  const command = ['redis-server', 'valkey-server'].find(
    (name) => spawnSync(name, ['--version']).status === 0,
  )
  if (!command) throw new Error('redis-server or valkey-server must be on the PATH.')
  const port = await freePort()
  const server = spawn(command, ['--port', String(port), '--save', '', '--appendonly', 'no'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`${command} ended with ${code}`)))
    server.stdout.on('data', (text) => {
      if (String(text).includes('Ready to accept connections')) resolve(undefined)
    })
  })
  const version = /v=(\S+)/.exec(String(spawnSync(command, ['--version']).stdout))?.[1]
  return { port, process: server, name: `${command} ${version}` }
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = /** @type {import('node:net').AddressInfo} */ (server.address())
      server.close(() => resolve(address.port))
    })
  })
}
