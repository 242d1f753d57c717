import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram, freePort } from '../find-program.ts'

/** RedisServer is a real server for one test file, on a free port that it keeps over restarts. */
export interface RedisServer {
  readonly port: number
  /** The process that runs now or ran last. */
  readonly process: ChildProcess
  /** Kills it at once. Unsaved data are lost. */
  kill(): Promise<void>
  /** Starts it, also after `kill`, and waits until it answers. */
  start(): Promise<void>
  /** Ends it for good. */
  stop(): Promise<void>
}

/** startRedis starts a server without persistence and waits until it answers. */
export async function startRedis(...options: string[]): Promise<RedisServer> {
  const server = await createRedis(...options)
  await server.start()
  return server
}

/** createRedis creates a server with a port, and does not start it yet. */
export async function createRedis(...options: string[]): Promise<RedisServer> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'))
  const args = ['--port', String(port), '--dir', folder, '--save', '', '--appendonly', 'no']
  let server: ChildProcess | undefined

  async function start(): Promise<void> {
    server = spawn(findServer(), [...args, ...options], { stdio: ['ignore', 'pipe', 'inherit'] })
    await untilReady(server)
  }

  async function kill(): Promise<void> {
    if (!server || server.exitCode !== null || server.signalCode !== null) return
    const ended = new Promise((resolve) => server?.once('exit', resolve))
    server.kill('SIGKILL')
    await ended
  }

  return {
    port,
    get process() {
      if (!server) throw new Error('the server was not started yet')
      return server
    },
    kill,
    start,
    async stop() {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function untilReady(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.once('exit', (code) => reject(new Error(`redis-server ended with ${code}`)))
    server.stdout?.on('data', (text) => {
      if (String(text).includes('Ready to accept connections')) resolve()
    })
  })
}

/** findServer returns the path of a Redis or Valkey server. */
export function findServer(): string {
  return findProgram(['redis-server', 'valkey-server'], ['redis-server', 'redis'])
}
