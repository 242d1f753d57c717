import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProgram, freePort } from '../find-program.ts'

/** MemcachedServer is a real server for one test file. */
export interface MemcachedServer {
  readonly port: number
  stop(): Promise<void>
}

/** startMemcached starts a server on a free port, and waits until it listens. */
export async function startMemcached(): Promise<MemcachedServer> {
  const port = await freePort()
  const args = ['-l', '127.0.0.1', '-p', String(port), '-U', '0', '-u', 'nobody']
  const server = spawn(findProgram(['memcached'], ['memcached']), args, { stdio: 'ignore' })
  while (!(await listens(port))) await sleep(20)
  return {
    port,
    async stop() {
      const ended = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGKILL')
      await ended
    },
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}
