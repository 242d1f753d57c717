// @ts-check
// npm run bench:redis: Sluice compared with other limiters on Redis, on one server, in one run.
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { describeMachine, readVersions } from '../lib/machine.mjs'
import { helpText, parseOptions } from '../lib/options.mjs'
import { installPeers, npm } from '../lib/peers.mjs'
import { textTable } from '../lib/table.mjs'
import { contestants } from './contestants.mjs'
import { documentOf, reportOf, sections } from './report.mjs'
import { startServer } from './server.mjs'
import { workloads } from './workloads.mjs'

/**
 * @typedef {import('./report.mjs').Row} Row
 */

const bench = new URL('..', import.meta.url)
const basic = [
  ...['sluice', 'sluice-window', 'sluice-two-rules'],
  ...['rate-limit-redis', 'rate-limiter-flexible', 'upstash'],
]

try {
  const options = parseOptions(process.argv.slice(2), Object.keys(contestants), sections)
  if (options.help) process.stdout.write(helpText(Object.keys(contestants), sections))
  else await run(options)
} catch (error) {
  console.error(`bench:redis: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}

/** @param {import('../lib/options.mjs').Options} options */
async function run({ contestants: wanted, workloads: chosen, repetitions, quick, doc }) {
  npm(new URL('..', bench), ['run', 'build'])
  installPeers(bench)
  const server = await startServer()
  /** @type {Row[]} */
  const rows = []
  const before = loadavg()
  try {
    const jobs = chosen.flatMap((section) =>
      Array.from({ length: section === 'frozen' ? 1 : repetitions }, (_, i) =>
        // Interleaved: whatever slows the machine down affects all of them.
        (workloads[section]?.contestants ?? basic)
          .filter((name) => wanted.includes(name))
          .map((contestant) => ({ section, contestant, repetition: i + 1 })),
      ).flat(),
    )
    for (const [i, job] of jobs.entries()) {
      const { section, contestant, repetition } = job
      console.error(`${i + 1}/${jobs.length}  ${section}  ${contestant}  repetition ${repetition}`)
      rows.push({ ...job, ...(await measure(job, server, quick ? 500 : 1_500)) })
    }
  } finally {
    server.process.kill('SIGKILL')
  }
  const packages = Object.values(contestants).flatMap((each) => each.package ?? [])
  const about = {
    machine: describeMachine(),
    server: server.name,
    load: { before, after: loadavg() },
    versions: readVersions(bench, [...new Set(['ioredis', ...packages])]),
    repetitions,
    rows,
  }
  console.log(reportOf(about, textTable))
  mkdirSync(new URL('results/', bench), { recursive: true })
  writeFileSync(new URL('results/redis.json', bench), `${JSON.stringify(about, undefined, 2)}\n`)
  if (doc) {
    writeFileSync(new URL('../docs/internals/benchmarks-redis.md', bench), documentOf(about))
  }
}

/**
 * Runs a job in its own process.
 * @param {{ section: string, contestant: string }} job
 * @param {Awaited<ReturnType<typeof startServer>>} server @param {number} ms
 * @returns {Promise<object>}
 */
function measure({ section, contestant }, { port, process: { pid } }, ms) {
  const file = section in workloads ? 'worker' : section
  const words = section in workloads ? [contestant, section, port, ms] : [contestant, port, pid]
  const path = new URL(`redis/${file}.mjs`, bench)
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [path.pathname, ...words.map(String)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let said = ''
    child.stdout.on('data', (text) => {
      said += text
    })
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(said))
      else reject(new Error(`${contestant} failed in ${section}`))
    })
  })
}
