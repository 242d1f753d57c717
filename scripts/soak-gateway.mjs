// npm run soak -- --parts gateway: the memory of a gateway under load from ever new clients must
// not grow.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { growth } from './growth.mjs'

const CONNECTIONS = 32
const MAX_KEYS = 50_000
const SAMPLE_MS = 5_000
/** The largest ratio of the memory in the last third to that in the third before. */
const MOST_GROWTH = 1.1

/**
 * soakGateway loads a gateway for some minutes and rejects if its memory grows, or a request
 * fails.
 * @param {number} minutes
 */
export async function soakGateway(minutes) {
  const root = resolve(import.meta.dirname, '..')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-soak-'))
  const file = join(folder, 'sluice.json')
  const config = {
    listen: '127.0.0.1:0',
    api: '127.0.0.1:0',
    store: { maxKeys: MAX_KEYS },
    tiers: { free: '5/1m' },
    key: 'header:x-user',
    upstreams: { demo: 'echo' },
    decisionLog: { file: join(folder, 'decisions.jsonl'), maxBytes: 10_000_000, files: 1 },
  }
  writeFileSync(file, JSON.stringify(config))
  const words = ['packages/server/bin/sluice.js', 'serve', '--config', file, '--log-level', 'error']
  const server = spawn(process.execPath, words, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [said] = await once(server.stdout, 'data')
    const [, gateway, api] = /gateway +(\S+)\nAPI +(\S+)/.exec(String(said)) ?? []
    const load = createLoad(gateway)
    /** @type {number[]} */
    const bytes = []
    const endMs = Date.now() + minutes * 60_000
    while (Date.now() < endMs) {
      await sleep(SAMPLE_MS)
      bytes.push(await memoryOf(api))
      const left = Math.max(0, Math.round((endMs - Date.now()) / 1_000))
      const megabytes = Math.round(bytes[bytes.length - 1] / 1e6)
      console.log(`soak: gateway: ${load.asked()} requests, ${megabytes} MB, ${left} s left`)
    }
    const failed = await load.stop()
    const grown = growth(bytes)
    console.log(`soak: gateway: ${load.asked()} requests, memory × ${grown.toFixed(3)}`)
    if (failed.length > 0) throw new Error(`${failed.length} requests failed: ${failed[0]}`)
    if (grown > MOST_GROWTH) throw new Error(`memory has grown to ${grown} times what it was`)
  } finally {
    server.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  }
}

/** Requests without end, three by each client. @param {string} url */
function createLoad(url) {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  /** @type {string[]} */
  const failed = []
  let asked = 0
  let isOver = false
  const all = Array.from({ length: CONNECTIONS }, async () => {
    while (!isOver) {
      asked += 1
      const headers = { 'x-user': `user-${Math.floor(asked / 3)}` }
      const status = await statusOf(url, { agent, headers }).catch((error) => error.message)
      if (status !== 200 && status !== 429) failed.push(String(status))
    }
  })
  return {
    asked: () => asked,
    async stop() {
      isOver = true
      await Promise.all(all)
      agent.destroy()
      return failed
    },
  }
}

/** @param {string} url @param {import('node:http').RequestOptions} options */
async function statusOf(url, options) {
  const asking = request(url, options).end()
  const [response] = await once(asking, 'response')
  response.resume()
  await once(response, 'end')
  return response.statusCode
}

/** Resident bytes of the server. @param {string} api */
async function memoryOf(api) {
  const text = await (await fetch(`${api}/metrics`)).text()
  return Number(/^process_resident_memory_bytes (\S+)/m.exec(text)?.[1])
}
