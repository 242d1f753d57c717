// @ts-check
import { jobsOf, timeLeftMs } from './jobs.mjs'
import { runWorker } from './run-worker.mjs'
import { workloads as all } from './workloads.mjs'

/**
 * @typedef {import('../contestants.mjs').Contestant & { module: string }} Located
 * @typedef {object} Plan
 * @property {readonly Located[]} contestants
 * @property {readonly string[]} workloads
 * @property {number} repetitions
 * @property {boolean} quick
 */

/**
 * compete verifies all contestants and then measures those that limit, one process after the other.
 * It reports its progress through `say`.
 * @param {Plan} plan @param {(line: string) => void} say
 * @returns {Promise<{ entrants: import('./summary.mjs').Entrant[],
 *   records: import('./summary.mjs').Measured[] }>}
 */
export async function compete({ contestants, workloads, repetitions, quick }, say) {
  const entrants = []
  for (const contestant of contestants) {
    entrants.push({ ...contestant, ...(await verified(contestant, say)) })
  }
  const sound = entrants.filter(({ failed, skipped }) => failed === undefined && !skipped)
  const jobs = jobsOf(sound, workloads, repetitions)
  const planned = jobs.map(({ contestant, workload }) => ({
    key: `${contestant.name} ${workload}`,
    guess: all[workload].guessS,
  }))
  const done = []
  const records = []
  for (const [i, { contestant, workload, repetition }] of jobs.entries()) {
    const left = timeLeftMs(planned.slice(i), done)
    say(
      `${i + 1}/${jobs.length}  ${workload}  ${contestant.name}  ` +
        `repetition ${repetition}/${repetitions}${left === undefined ? '' : leftText(left)}`,
    )
    const { module, name } = contestant
    const decides = contestant.decides !== false
    const job = { module, contestant: name, workload, repetition, quick, decides }
    const startMs = performance.now()
    const answer = await runWorker(job)
    const processMs = performance.now() - startMs
    done.push({ ...planned[i], ms: processMs })
    if (answer.failed !== undefined) say(`    failed: ${answer.failed}`)
    records.push({ contestant: name, workload, repetition, ...answer, processMs })
  }
  return { entrants: entrants.map(({ module: _, ...entrant }) => entrant), records }
}

/** @param {Located} contestant @param {(line: string) => void} say */
async function verified({ name, module, decides }, say) {
  const job = { module, contestant: name, repetition: 0, quick: true, decides: decides !== false }
  const { failed, skipped, async } = await runWorker(job)
  if (failed !== undefined) say(`${name}: failed: ${failed}`)
  if (skipped !== undefined) say(`${name}: skipped: ${skipped}`)
  return { async, skipped, failed }
}

/** @param {number} ms */
function leftText(ms) {
  const seconds = Math.round(ms / 1_000)
  return seconds < 100
    ? `  about ${seconds} s left`
    : `  about ${Math.round(seconds / 60)} min left`
}
