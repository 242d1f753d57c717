// @ts-check
import { mkdirSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { contestants } from './contestants.mjs'
import { compete } from './lib/compete.mjs'
import { documentOf } from './lib/document.mjs'
import { describeMachine, readVersions } from './lib/machine.mjs'
import { helpText, parseOptions } from './lib/options.mjs'
import { installPeers, npm } from './lib/peers.mjs'
import { reportOf } from './lib/report.mjs'
import { textTable } from './lib/table.mjs'
import { measureThreads } from './lib/threads.mjs'
import { workloads } from './lib/workloads.mjs'

const bench = new URL('.', import.meta.url)
const names = contestants.map(({ name }) => name)
/** The section on threads, besides the workloads that every contestant runs. */
const sections = [...Object.keys(workloads), 'threads']

try {
  const options = parseOptions(process.argv.slice(2), names, sections)
  if (options.help) process.stdout.write(helpText(names, sections))
  else await run(options)
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}

/** @param {import('./lib/options.mjs').Options} options */
async function run({ contestants: wanted, workloads: chosenSections, repetitions, quick, doc }) {
  const workloads = chosenSections.filter((name) => name !== 'threads')
  npm(new URL('..', bench), ['run', 'build'])
  installPeers(bench)
  const chosen = contestants
    .filter(({ name }) => wanted.includes(name) && workloads.length > 0)
    .map((each) => ({ ...each, module: new URL(`contestants/${each.name}.mjs`, bench).href }))
  const versions = readVersions(bench, [
    ...new Set([
      ...chosen.flatMap((each) => each.package ?? []),
      ...(chosenSections.includes('threads') ? ['rate-limiter-flexible'] : []),
    ]),
  ])
  const startedAt = new Date()
  const before = loadavg()
  const plan = { contestants: chosen, workloads, repetitions, quick }
  const say = (/** @type {string} */ line) => console.error(line)
  const { entrants, records } = await compete(plan, say)
  const threads = chosenSections.includes('threads') ? await measureThreads(plan, say) : []
  /** @type {import('./lib/report.mjs').Run} */
  const results = {
    startedAt: startedAt.toISOString(),
    seconds: (Date.now() - startedAt.getTime()) / 1_000,
    quick,
    repetitions,
    workloads,
    machine: describeMachine(),
    load: { before, after: loadavg() },
    versions,
    entrants,
    records,
    threads,
  }
  print(results)
  mkdirSync(new URL('results/', bench), { recursive: true })
  const json = `${JSON.stringify(results, undefined, 2)}\n`
  writeFileSync(new URL('results/latest.json', bench), json)
  if (doc) writeFileSync(new URL('../docs/internals/benchmarks.md', bench), documentOf(results))
  if ([...entrants, ...records].some(({ failed }) => failed !== undefined)) process.exitCode = 1
}

/** @param {import('./lib/report.mjs').Run} results */
function print(results) {
  const { machine, load, versions, repetitions, entrants } = results
  for (const { title, about, text } of reportOf(results, textTable)) {
    console.log(`\n${title}\n${about}\n\n${text}`)
  }
  for (const { label, skipped } of entrants) if (skipped) console.log(`${label}: ${skipped}`)
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const loads = [load.before, load.after].map(([minute]) => minute.toFixed(2)).join(' before, ')
  console.log(`
${repetitions} repetitions${repetitions < 5 ? ' (too few to rely on)' : ''}; awaited: answers later
Node ${machine.node}, ${machine.cores} × ${machine.cpu}, load ${loads} after
${list.join(', ')}`)
}
