// @ts-check
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { spreadOf } from './statistics.mjs'
import { numberText } from './table.mjs'

const script = fileURLToPath(new URL('../threads/ways.mjs', import.meta.url))

/** The ways for threads to share a limit, with their labels. */
const ways = {
  unshared: 'sluice compactStore, one per thread: no common limit',
  shared: 'sluice sharedMemoryStore',
  'post-message': 'sluice compactStore on the main thread, called by postMessage',
  cluster: 'rate-limiter-flexible, processes that call the cluster’s primary',
}
const counts = [1, 2, 4]

/** @typedef {{ way: string, threads: number, repetition: number, perSecond: number }} ThreadSample */

/**
 * measureThreads measures every way with every number of threads, each in its own process.
 * @param {{ repetitions: number, quick: boolean }} plan @param {(line: string) => void} say
 * @returns {Promise<ThreadSample[]>}
 */
export async function measureThreads({ repetitions, quick }, say) {
  const ms = quick ? 200 : 1_000
  const samples = []
  for (let repetition = 1; repetition <= repetitions; repetition += 1) {
    say(`threads  repetition ${repetition}/${repetitions}`)
    for (const threads of counts) {
      for (const way of Object.keys(ways)) {
        const args = [script, way, String(threads), String(ms)]
        const { stdout } = await promisify(execFile)(process.execPath, args)
        samples.push({ way, threads, repetition, perSecond: Number(stdout) })
      }
    }
  }
  return samples
}

/**
 * threadsReport returns the table of such samples, in thousands of decisions per second of all
 * threads together, and the ratios that matter, taken within each repetition.
 * @param {readonly ThreadSample[]} samples @param {import('./report.mjs').TableWriter} table
 * @returns {{ title: string, about: string, text: string }}
 */
export function threadsReport(samples, table) {
  const of = (/** @type {string} */ way, /** @type {number} */ threads) =>
    samples.filter((each) => each.way === way && each.threads === threads)
  const rows = Object.entries(ways).map(([way, label]) => [
    label,
    ...counts.flatMap((threads) => {
      const spread = spreadOf(of(way, threads).map(({ perSecond }) => perSecond / 1_000))
      return spread ? [numberText(spread.median), rangeText(spread)] : ['-', '-']
    }),
  ])
  const ratio = (/** @type {ThreadSample[]} */ above, /** @type {ThreadSample[]} */ below) => {
    const all = above.map(({ repetition, perSecond }) => {
      const other = below.find((each) => each.repetition === repetition)
      return perSecond / (other?.perSecond ?? Number.NaN)
    })
    const spread = spreadOf(all)
    return spread ? `${numberText(spread.median)} (${rangeText(spread)})` : '-'
  }
  const header = [
    '',
    ...counts.flatMap((count) => [`${count} thread${count > 1 ? 's' : ''}`, 'min – max']),
  ]
  const about =
    'Thousands of decisions per second of all threads together, 10,000 keys, each string built ' +
    'anew, all allowed. In the last two rows each thread or process awaits one call at a time.\n\n' +
    `- Time of sharedMemoryStore, times that of compactStore, one thread: ${ratio(of('unshared', 1), of('shared', 1))}.\n` +
    `- Two threads on sharedMemoryStore, times one: ${ratio(of('shared', 2), of('shared', 1))}.\n` +
    `- One thread on sharedMemoryStore, times calling by postMessage: ${ratio(of('shared', 1), of('post-message', 1))}; ` +
    `two: ${ratio(of('shared', 2), of('post-message', 2))}.`
  return { title: 'Threads', about, text: table(header, rows) }
}

/** @param {import('./statistics.mjs').Spread} spread */
function rangeText({ min, max }) {
  return `${numberText(min)} – ${numberText(max)}`
}
