// @ts-check
// npm run bench:gateway: the cost of the gateway and the decision API, compared with no limits.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeMachine, readVersions } from '../lib/machine.mjs'
import { helpText, parseOptions } from '../lib/options.mjs'
import { installPeers, npm } from '../lib/peers.mjs'
import { textTable } from '../lib/table.mjs'
import { documentOf, reportOf } from './report.mjs'

/** @typedef {import('./report.mjs').Row} Row */

const bench = new URL('..', import.meta.url)
const sections = ['gateway', 'check', 'batch']
const CONNECTIONS = 50
const BATCH = 100

try {
  const options = parseOptions(process.argv.slice(2), ['sluice'], sections)
  if (options.help) process.stdout.write(helpText(['sluice'], sections))
  else await run(options)
} catch (error) {
  console.error(`bench:gateway: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}

/** @param {import('../lib/options.mjs').Options} options */
async function run({ workloads: chosen, repetitions, quick, doc }) {
  npm(new URL('..', bench), ['run', 'build'])
  installPeers(bench)
  const before = loadavg()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  /** @type {import('node:child_process').ChildProcess[]} */
  const children = []
  /** @type {Row[]} */
  const rows = []
  try {
    const own = fileURLToPath(new URL('servers.mjs', import.meta.url))
    const upstream = await start(children, /(http:\S+)/, [own, 'upstream'])
    const proxy = await start(children, /(http:\S+)/, [own, 'proxy', upstream])
    const echo = await start(children, /(http:\S+)/, [own, 'echo'])
    const file = join(folder, 'sluice.json')
    const tiers = { free: '10000000/1h' }
    const listen = { listen: '127.0.0.1:0', api: '127.0.0.1:0' }
    writeFileSync(file, JSON.stringify({ ...listen, tiers, upstreams: { main: upstream } }))
    const sluice = fileURLToPath(new URL('../packages/server/bin/sluice.js', bench))
    const said = /gateway +(\S+)\nAPI +(\S+)/
    const words = [sluice, 'serve', '--config', file, '--log-level', 'silent']
    // Each section has its own process on both sides.
    const serve = async () => (await start(children, said, words)).split(' ')
    const [gateway] = await serve()
    const [, api] = await serve()
    const [, batchApi] = await serve()

    const one = JSON.stringify({ key: 'alice' })
    const checks = Array.from({ length: BATCH }, (_, i) => ({ key: `user-${i}` }))
    const many = JSON.stringify({ checks })
    /** @type {Record<string, [string, string, string | undefined][]>} */
    const contestants = {
      gateway: [
        ['bare', proxy, undefined],
        ['sluice', gateway, undefined],
      ],
      check: [
        ['bare', `${echo}/v1/check`, one],
        ['sluice', `${api}/v1/check`, one],
      ],
      batch: [
        ['bare', `${batchApi}/v1/check`, one],
        ['sluice', `${batchApi}/v1/check`, many],
      ],
    }
    for (const section of chosen) {
      for (const [, url, body] of contestants[section]) await load(url, body, 1_000)
      for (let repetition = 1; repetition <= repetitions; repetition += 1) {
        for (const [contestant, url, body] of contestants[section]) {
          console.error(`${section}  ${contestant}  repetition ${repetition} of ${repetitions}`)
          const figures = await load(url, body, quick ? 1_000 : 3_000)
          rows.push({ section, contestant, repetition, ...figures })
        }
      }
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  }
  const about = {
    machine: describeMachine(),
    load: { before, after: loadavg() },
    versions: readVersions(bench, ['fastify', '@fastify/reply-from', 'autocannon']),
    repetitions,
    connections: CONNECTIONS,
    batch: BATCH,
    rows,
  }
  console.log(reportOf(about, textTable))
  mkdirSync(new URL('results/', bench), { recursive: true })
  writeFileSync(new URL('results/gateway.json', bench), `${JSON.stringify(about, undefined, 2)}\n`)
  if (doc)
    writeFileSync(new URL('../docs/internals/benchmarks-gateway.md', bench), documentOf(about))
}

/**
 * Starts a server in its own process, and returns the address that it prints.
 * @param {import('node:child_process').ChildProcess[]} children
 * @param {RegExp} pattern @param {string[]} words
 * @returns {Promise<string>}
 */
function start(children, pattern, words) {
  const child = spawn(process.execPath, words, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  children.push(child)
  return new Promise((resolve, reject) => {
    let said = ''
    child.stdout.on('data', (data) => {
      said += data
      const found = pattern.exec(said)
      if (found) resolve(found.slice(1).join(' '))
    })
    child.once('exit', () => reject(new Error(`${words.join(' ')} ended`)))
  })
}

/**
 * Sends requests for `ms`, with a body or without. All must be answered with 200.
 * @param {string} url @param {string | undefined} body @param {number} ms
 */
async function load(url, body, ms) {
  const { default: autocannon } = await import('autocannon')
  const post = { method: /** @type {const} */ ('POST'), body }
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: ms / 1_000,
    ...(body === undefined ? {} : { ...post, headers: { 'content-type': 'application/json' } }),
  })
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${url}: not all were admitted`)
  return { perSecond: result['2xx'] / result.duration, p99Ms: result.latency.p99 }
}
