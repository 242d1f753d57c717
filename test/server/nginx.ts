import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, works } from '../redis/server.ts'

/** Nginx is a real nginx of a test's own, on a free port of 127.0.0.1. */
export interface Nginx {
  readonly port: number
  readonly url: string
  /** Ends it, and removes its folder. */
  stop(): Promise<void>
}

/**
 * startNginx starts an nginx whose `http` block is `config(port)`, and waits until it listens. It
 * is one process in the foreground: nothing is left when that ends.
 */
export async function startNginx(config: (port: number) => string): Promise<Nginx> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-nginx-'))
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, framed(folder, config(port)))
  const server = spawn(findNginx(), ['-p', folder, '-c', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  server.stderr.on('data', (text) => {
    said += text
  })

  async function stop(): Promise<void> {
    if (server.exitCode === null && server.signalCode === null) {
      const ended = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGKILL')
      await ended
    }
    rmSync(folder, { recursive: true, force: true })
  }

  try {
    await untilListening(server, port)
  } catch (error) {
    await stop()
    throw new Error(`nginx does not start: ${said}`, { cause: error })
  }
  return { port, url: `http://127.0.0.1:${port}`, stop }
}

/** All that nginx writes goes to the folder. */
function framed(folder: string, http: string): string {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
access_log off;
${kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};`).join('\n')}
${http}
}
`
}

async function untilListening(server: ChildProcess, port: number): Promise<void> {
  let failure: Error | undefined
  server.once('error', (error) => {
    failure = error
  })
  server.once('exit', (code) => {
    failure = new Error(`it ended with ${code}`)
  })
  for (const end = Date.now() + 10_000; Date.now() < end; await sleep(10)) {
    if (failure) throw failure
    if (await accepts(port)) return
  }
  throw new Error('it does not listen')
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

let command: string | undefined

/** findNginx is the command of nginx; it is installed first where that can be done unasked. */
function findNginx(): string {
  command ??= lookForNginx()
  return command
}

function lookForNginx(): string {
  // Not everybody has the folders of root on the PATH.
  const names = ['nginx', '/usr/sbin/nginx', '/usr/local/sbin/nginx']
  const find = () => names.find((name) => works(name, '-v'))
  const found = find() ?? (install() ? find() : undefined)
  if (found) return found
  throw new Error('The tests need nginx, with its auth_request module, on the PATH.')
}

/** Packages start a server of their own, on port 80: that is not wanted. */
function install(): boolean {
  const root = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  const apt = [...root, 'env', 'RUNLEVEL=1', 'DEBIAN_FRONTEND=noninteractive', 'apt-get']
  works(...apt, 'update')
  const isThere = ['nginx-light', 'nginx'].some((name) => works(...apt, 'install', '-y', name))
  if (!isThere) return works('brew', 'install', 'nginx')
  works(...root, 'service', 'nginx', 'stop')
  return true
}
