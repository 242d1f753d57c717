// @ts-check
import { summarize } from './summary.mjs'
import { numberText } from './table.mjs'
import { threadsReport } from './threads.mjs'
import { sized } from './workloads.mjs'

/**
 * @typedef {import('./summary.mjs').Row} Row
 * @typedef {import('./summary.mjs').Spread} Spread
 * @typedef {(header: string[], rows: string[][]) => string} TableWriter
 * @typedef {object} Run everything that `bench/results/latest.json` holds
 * @property {string} startedAt ISO 8601
 * @property {number} seconds
 * @property {boolean} quick
 * @property {number} repetitions
 * @property {string[]} workloads
 * @property {import('./machine.mjs').Machine} machine
 * @property {{ before: number[], after: number[] }} load averages over 1, 5 and 15 minutes
 * @property {Record<string, string>} versions
 * @property {import('./summary.mjs').Entrant[]} entrants
 * @property {import('./summary.mjs').Measured[]} records every sample
 * @property {import('./threads.mjs').ThreadSample[]} [threads]
 */

/**
 * reportOf returns the tables of a run: one for each workload, with bytes per key after the 1M keys,
 * and stalls and memory after the flood; and one for threads.
 * @param {Run} run @param {TableWriter} table
 * @returns {{ title: string, about: string, text: string }[]}
 */
export function reportOf(run, table) {
  const ofThreads = run.threads?.length ? [threadsReport(run.threads, table)] : []
  const ofWorkloads = run.workloads.flatMap((name) => {
    const workload = sized(name, run.quick)
    const { rows, bestPeer } = summarize(name, run.entrants, run.records)
    const shares = rows.flatMap(({ entrant, refusedShare }) =>
      refusedShare === undefined || entrant.decides === false ? [] : [refusedShare],
    )
    const shown = countText(workload.flood ? workload.calls : workload.keys)
    const about =
      `${workload.about(shown)} Refused: ${percent(Math.max(0, ...shares))}. ` +
      `Best peer: ${bestPeer?.label ?? 'none'}.`
    const text = table(...timeTable(rows)) + failures(rows)
    const sections = [{ title: name, about, text }]
    if (name === '1M') {
      const about =
        `Memory that each of ${shown} keys of 11 characters takes up, the key's own ` +
        'string included where the store keeps it: heap and typed arrays after a full collection, ' +
        'less what was there before.'
      sections.push({ title: 'Bytes per key', about, text: table(...bytesTable(rows)) })
    }
    if (workload.flood) {
      const about =
        'Of the same flood: the longest stall is how much longer than the median the slowest ' +
        '1,000 calls took; memory is what was held at the end, after a full collection. ' +
        'Contestants that would have taken too long were stopped: the last column says how far they ' +
        'came, at least.'
      sections.push({ title: 'Flood: stalls and memory', about, text: table(...floodTable(rows)) })
    }
    return sections
  })
  return [...ofWorkloads, ...ofThreads]
}

/** @param {Row[]} rows @returns {[string[], string[][]]} */
function timeTable(rows) {
  const header = [
    '',
    'ns per call',
    'min – max',
    '× best peer',
    'min – max',
    '× floor',
    'min – max',
  ]
  return [
    header,
    rows.map(({ entrant, failed, ns, toPeer, toFloor }) => {
      if (failed !== undefined) return [labelOf(entrant), 'failed', '', '', '', '', '']
      const cells = [ns, toPeer, toFloor].flatMap((each) => [middle(each), range(each)])
      return [labelOf(entrant), ...cells]
    }),
  ]
}

/** @param {Row[]} rows @returns {[string[], string[][]]} */
function bytesTable(rows) {
  const header = ['', 'bytes per key', 'min – max']
  return [
    header,
    rows
      .toSorted((a, b) => (a.bytesPerKey?.median ?? 0) - (b.bytesPerKey?.median ?? 0))
      .filter(({ failed }) => failed === undefined)
      .map(({ entrant, bytesPerKey }) => [
        labelOf(entrant),
        middle(bytesPerKey),
        range(bytesPerKey),
      ]),
  ]
}

/** @param {Row[]} rows @returns {[string[], string[][]]} */
function floodTable(rows) {
  const header = ['', 'longest stall ms', 'min – max', 'memory MB', 'keys called']
  return [
    header,
    rows
      .filter(({ failed }) => failed === undefined)
      .map(({ entrant, stallMs, heldBytes, calls = 0 }) => [
        labelOf(entrant),
        middle(stallMs),
        range(stallMs),
        heldBytes ? numberText(heldBytes.median / 1e6) : '-',
        countText(calls),
      ]),
  ]
}

/** @param {Row[]} rows */
function failures(rows) {
  const failed = rows.flatMap(({ entrant, failed }) => (failed ? [[labelOf(entrant), failed]] : []))
  return failed.map(([label, why]) => `\n${label} failed: ${why}.\n`).join('')
}

/** @param {import('./summary.mjs').Entrant} entrant */
function labelOf({ label, async }) {
  return async ? `${label} (awaited)` : label
}

/** @param {Spread | undefined} spread */
function middle(spread) {
  return spread ? numberText(spread.median) : '-'
}

/** @param {Spread | undefined} spread */
function range(spread) {
  return spread ? `${numberText(spread.min)} – ${numberText(spread.max)}` : '-'
}

/** @param {number} count */
function countText(count) {
  return count.toLocaleString('en-US')
}

/** @param {number} share */
function percent(share) {
  return `${(share * 100).toFixed(share > 0 && share < 1 ? 1 : 0)} %`
}
