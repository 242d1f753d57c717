// @ts-check
// npm run bench:redis: Sluice next to other limiters on Redis, on one server, in one run.
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { describeMachine, readVersions } from '../lib/machine.mjs'
import { helpText, parseOptions } from '../lib/options.mjs'
import { installPeers, npm } from '../lib/peers.mjs'
import { ratiosTo, spreadOf } from '../lib/statistics.mjs'
import { markdownTable, numberText, textTable } from '../lib/table.mjs'
import { contestants } from './contestants.mjs'
import { startServer } from './server.mjs'
import { workloads } from './workloads.mjs'

/**
 * @typedef {{ section: string, contestant: string, repetition: number, [figure: string]: any }} Row
 * @typedef {Record<string, import('../lib/statistics.mjs').Spread | undefined>} Figures
 */

const bench = new URL('..', import.meta.url)
const basic = ['sluice', 'rate-limit-redis', 'rate-limiter-flexible', 'upstash']
const sections = [...Object.keys(workloads), 'bytes', 'frozen']

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
        // Interleaved: what slows the machine down for a while slows down all of them.
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
  console.log(report(about, textTable))
  mkdirSync(new URL('results/', bench), { recursive: true })
  writeFileSync(new URL('results/redis.json', bench), `${JSON.stringify(about, undefined, 2)}\n`)
  if (doc) {
    const text = `# Benchmarks on Redis\n\n${preface}\n${report(about, markdownTable)}`
    writeFileSync(new URL('../docs/benchmarks-redis.md', bench), text)
  }
}

const preface = `Made by \`npm run bench:redis -- --doc\`. All contestants use ioredis on one server on
the same machine, each in a process of its own, one after the other and again from the start. Ratios
are to the best peer in the same repetition; ranges are the lowest and highest of all repetitions.
Loopback has no latency to speak of: with a network between, one trip weighs more and what a client
or Redis computes weighs less. Client and server share the machine's cores.
`

/**
 * Runs a job in a process of its own.
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

/**
 * @param {{ machine: any, server: string, load: any, versions: Record<string, string>,
 *   repetitions: number, rows: Row[] }} about
 * @param {typeof textTable} table
 */
function report({ machine, server, load, versions, repetitions, rows }, table) {
  const parts = sections.filter((section) => rows.some((row) => row.section === section))
  const texts = parts.map((section) => {
    const own = rows.filter((row) => row.section === section)
    if (section === 'bytes')
      return part('Bytes of Redis’s memory for a key of 11 characters', bytes)
    if (section === 'frozen') return part('Redis frozen for 3 s, 200 calls a second', frozen)
    return part(workloads[section].about, speed)
    /** @param {string} title @param {(rows: Row[]) => [string[], string[][]]} make */
    function part(title, make) {
      return `\n${title}\n\n${table(...make(own))}`
    }
  })
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const loads = [load.before, load.after].map(([minute]) => minute.toFixed(2)).join(' before, ')
  return `${texts.join('')}
${repetitions} repetitions, medians; ${server}; Node ${machine.node}, ${machine.cores} × ${machine.cpu}, load ${loads} after
${list.join(', ')}
`
}

/** @param {Row[]} rows @returns {[string[], string[][]]} */
function speed(rows) {
  const header = 'limiter,decisions/s,ratio,p50 µs,ratio,p99 µs,Redis µs,ratio,client µs,trips'
  const names = [...new Set(rows.map((row) => row.contestant))]
  const peers = names.filter((name) => !name.startsWith('sluice'))
  const by = (/** @type {string} */ name, /** @type {string} */ figure) =>
    new Map(
      rows.filter((row) => row.contestant === name).map((row) => [row.repetition, row[figure]]),
    )
  /** The best peer, by its median. */
  const best = (/** @type {string} */ figure, /** @type {1 | -1} */ sign) =>
    peers.sort((a, b) => sign * (middle(b, figure) - middle(a, figure)))[0]
  const middle = (/** @type {string} */ name, /** @type {string} */ figure) =>
    spreadOf([...by(name, figure).values()])?.median ?? Number.NaN
  const ratio = (
    /** @type {string} */ name,
    /** @type {string} */ figure,
    /** @type {1 | -1} */ sign,
  ) => {
    const spread = ratiosTo(by(name, figure), by(best(figure, sign), figure))
    if (!spread) return ''
    const { median, min, max } = spread
    return `${numberText(median)} (${numberText(min)}–${numberText(max)})`
  }
  return [
    header.split(','),
    names.map((name) => [
      contestants[name].label,
      numberText(middle(name, 'perSecond')),
      ratio(name, 'perSecond', 1),
      numberText(middle(name, 'p50Us')),
      ratio(name, 'p50Us', -1),
      numberText(middle(name, 'p99Us')),
      numberText(middle(name, 'redisUs')),
      ratio(name, 'redisUs', -1),
      numberText(middle(name, 'clientUs')),
      numberText(middle(name, 'trips')),
    ]),
  ]
}

/** @param {Row[]} rows @returns {[string[], string[][]]} */
function bytes(rows) {
  const names = [...new Set(rows.map((row) => row.contestant))]
  return [
    ['limiter', 'bytes'],
    names.map((name) => {
      const own = rows.filter((row) => row.contestant === name).map((row) => row.bytes)
      return [contestants[name].label, numberText(spreadOf(own)?.median ?? Number.NaN)]
    }),
  ]
}

/** @param {Row[]} rows @returns {[string[], string[][]]} */
function frozen(rows) {
  return [
    ['limiter', 'longest call ms', 'median after 0.5 s, ms', 'calls that threw'],
    rows.map((row) => [
      contestants[row.contestant].label,
      numberText(row.longestMs),
      numberText(row.medianMs),
      String(row.threw),
    ]),
  ]
}
