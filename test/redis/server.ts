import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** RedisServer is a real server of a test's own, on a free port that stays its own. */
export interface RedisServer {
  readonly port: number
  /** The one that runs now, or ran last. */
  readonly process: ChildProcess
  /** Ends it at once; what it has not saved is lost. */
  kill(): Promise<void>
  /** Starts it, again after `kill`, and waits until it answers. */
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

/** createRedis is a server that has a port, and was not started yet. */
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

let command: string | undefined

/** The command of a server on the PATH; it is installed first where that can be done unasked. */
export function findServer(): string {
  command ??= lookForServer()
  return command
}

function lookForServer(): string {
  const find = () => ['redis-server', 'valkey-server'].find((name) => works(name, '--version'))
  const found = find() ?? (install() ? find() : undefined)
  if (found) return found
  throw new Error('The tests need redis-server or valkey-server, 6.2 or newer, on the PATH.')
}

function install(): boolean {
  const apt = process.getuid?.() === 0 ? ['apt-get'] : ['sudo', '-n', 'apt-get']
  works(...apt, 'update')
  return works(...apt, 'install', '-y', 'redis-server') || works('brew', 'install', 'redis')
}

/** works runs a command, and tells whether it could. */
export function works(...[command, ...args]: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
