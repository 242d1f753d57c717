// @ts-check
// npm run bench:http: the cost of a limit on a hello-world route, compared with the usual limiter.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { describeMachine, readVersions } from '../lib/machine.mjs'
import { helpText, parseOptions } from '../lib/options.mjs'
import { installPeers, npm } from '../lib/peers.mjs'
import { textTable } from '../lib/table.mjs'
import { documentOf, reportOf } from './report.mjs'

/** @typedef {import('./report.mjs').Row} Row */

const bench = new URL('..', import.meta.url)
const frameworks = ['fastify', 'express', 'hono']
const contestants = ['bare', 'empty', 'fields', 'sluice', 'usual']
const CONNECTIONS = 50
const packages = [
  ...['express', 'fastify', 'hono', '@hono/node-server', 'autocannon'],
  ...['express-rate-limit', '@fastify/rate-limit', 'hono-rate-limiter'],
]

try {
  const options = parseOptions(process.argv.slice(2), contestants, frameworks)
  if (options.help) process.stdout.write(helpText(contestants, frameworks))
  else await run(options)
} catch (error) {
  console.error(`bench:http: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}

/** @param {import('../lib/options.mjs').Options} options */
async function run({ contestants: wanted, workloads: chosen, repetitions, quick, doc }) {
  npm(new URL('..', bench), ['run', 'build'])
  installPeers(bench)
  const before = loadavg()
  /** @type {Row[]} */
  const rows = []
  for (const framework of chosen) {
    await verify(framework, wanted)
    const servers = await Promise.all(wanted.map((name) => start(framework, name, 10_000_000)))
    try {
      for (const server of servers) await load(server, quick ? 500 : 2_000)
      for (let repetition = 1; repetition <= repetitions; repetition += 1) {
        // Interleaved, in rotating order: whatever slows the machine down affects all of them.
        for (let i = 0; i < servers.length; i += 1) {
          const server = servers[(i + repetition) % servers.length]
          const { contestant } = server
          console.error(`${framework}  ${contestant}  repetition ${repetition} of ${repetitions}`)
          const figures = await load(server, quick ? 1_000 : 3_000)
          rows.push({ framework, contestant, repetition, ...figures })
        }
      }
    } finally {
      for (const { child } of servers) child.disconnect()
    }
  }
  const about = {
    machine: describeMachine(),
    load: { before, after: loadavg() },
    versions: readVersions(bench, packages),
    repetitions,
    connections: CONNECTIONS,
    rows,
  }
  console.log(reportOf(about, textTable))
  mkdirSync(new URL('results/', bench), { recursive: true })
  writeFileSync(new URL('results/http.json', bench), `${JSON.stringify(about, undefined, 2)}\n`)
  if (doc) writeFileSync(new URL('../docs/internals/benchmarks-http.md', bench), documentOf(about))
}

/**
 * Starts a server in its own process.
 * @param {string} framework @param {string} contestant @param {number} limit
 */
async function start(framework, contestant, limit) {
  const child = fork(
    new URL('server.mjs', import.meta.url),
    [framework, contestant, String(limit)],
    {
      env: { ...process.env, NODE_ENV: 'production' },
    },
  )
  const [{ port }] = await once(child, 'message')
  return { child, contestant, port }
}

/**
 * Checks that a contestant with a limit of two refuses the third request.
 * @param {string} framework @param {string[]} wanted
 */
async function verify(framework, wanted) {
  for (const contestant of wanted) {
    const { child, port } = await start(framework, contestant, 2)
    const statuses = []
    for (let i = 0; i < 3; i += 1) statuses.push((await fetch(`http://127.0.0.1:${port}`)).status)
    child.disconnect()
    const expected = ['bare', 'empty', 'fields'].includes(contestant)
      ? '200,200,200'
      : '200,200,429'
    if (String(statuses) !== expected) {
      throw new Error(`${framework} ${contestant} answered ${statuses} with a limit of 2`)
    }
  }
}

/**
 * Sends requests to a server for `ms`. Every request must be admitted.
 * @param {Awaited<ReturnType<typeof start>>} server @param {number} ms
 */
async function load({ child, port }, ms) {
  const { default: autocannon } = await import('autocannon')
  const startUs = await cpuUs(child)
  const result = await autocannon({
    url: `http://127.0.0.1:${port}`,
    connections: CONNECTIONS,
    duration: ms / 1_000,
  })
  const usedUs = (await cpuUs(child)) - startUs
  const requests = result['2xx']
  if (result.non2xx > 0 || result.errors > 0) throw new Error('not all requests were admitted')
  return {
    perSecond: requests / result.duration,
    cpuUs: usedUs / requests,
    p99Ms: result.latency.p99,
  }
}

/** @param {import('node:child_process').ChildProcess} child @returns {Promise<number>} */
async function cpuUs(child) {
  child.send('cpu')
  const [{ cpuUs }] = await once(child, 'message')
  return cpuUs
}
