import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProgram, freePort } from '../find-program.ts'

/** Nginx is a real nginx for one test, on a free port of 127.0.0.1. */
export interface Nginx {
  readonly port: number
  readonly url: string
  /** Stops it, and removes its folder. */
  stop(): Promise<void>
}

/**
 * startNginx starts an nginx whose `http` block is `config(port)`, and waits until it listens. It
 * is one process in the foreground, so that nothing is left when it ends.
 */
export async function startNginx(config: (port: number) => string): Promise<Nginx> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-nginx-'))
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, framed(folder, config(port)))
  const server = spawn(
    findProgram(['nginx'], ['nginx-light', 'nginx']),
    ['-p', folder, '-c', file],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
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

/** Builds a configuration in which nginx writes to its folder only. */
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
