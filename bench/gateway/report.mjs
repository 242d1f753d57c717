// @ts-check
import { ratiosTo, spreadOf } from '../lib/statistics.mjs'
import { markdownTable, numberText } from '../lib/table.mjs'

/**
 * @typedef {{ section: string, contestant: string, repetition: number, perSecond: number,
 *   p99Ms: number }} Row
 * @typedef {object} About
 * @property {any} machine
 * @property {any} load
 * @property {Record<string, string>} versions
 * @property {number} repetitions
 * @property {number} connections
 * @property {number} batch
 * @property {Row[]} rows
 */

/** @type {Record<string, { title: string, bare: string, sluice: string }>} */
const texts = {
  gateway: {
    title: 'Gateway',
    bare: 'Fastify and @fastify/reply-from without limits',
    sluice: 'sluice serve',
  },
  check: {
    title: 'POST /v1/check',
    bare: 'a Fastify route that echoes JSON',
    sluice: 'one decision a request',
  },
  batch: {
    title: 'POST /v1/check, decisions',
    bare: 'one a request',
    sluice: '100 a request',
  },
}

const preface = `Made by \`npm run bench:gateway -- --doc\`. Every server is a process of its own,
loaded by autocannon in turns on the same machine, so they share its cores. All requests are admitted.
Ratios are to the first line in the same repetition; ranges are the minimum and maximum of all
repetitions. The last table counts decisions, not requests.
`

/**
 * documentOf returns the page of a run.
 * @param {About} about
 */
export function documentOf(about) {
  return `# What the service costs\n\n${preface}\n${reportOf(about, markdownTable)}`
}

/**
 * reportOf returns all sections of a run as tables.
 * @param {About} about @param {typeof markdownTable} table
 */
export function reportOf(
  { machine, load, versions, repetitions, connections, batch, rows },
  table,
) {
  const sections = [...new Set(rows.map(({ section }) => section))]
  const parts = sections.map((section) => {
    const own = rows
      .filter((row) => row.section === section)
      .map((row) => {
        const times = section === 'batch' && row.contestant === 'sluice' ? batch : 1
        return { ...row, perSecond: row.perSecond * times }
      })
    const { title, ...names } = texts[section]
    const header = [
      '',
      section === 'batch' ? 'decisions/s' : 'requests/s',
      'ratio',
      'p99 ms',
      'ratio',
    ]
    const lines = Object.entries(names).map(([contestant, name]) => [
      name,
      ...columns(own, contestant, 'perSecond'),
      ...columns(own, contestant, 'p99Ms'),
    ])
    return `\n${table === markdownTable ? '## ' : ''}${title}\n\n${table(header, lines)}`
  })
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const loads = [load.before, load.after].map(([minute]) => minute.toFixed(2)).join(' before, ')
  return `${parts.join('')}
${repetitions} repetitions, medians; ${connections} connections; Node ${machine.node}, ${machine.cores} × ${machine.cpu}, load ${loads} after
${list.join(', ')}
`
}

/**
 * Returns the median of a result, and its ratio to that of the bare server.
 * @param {Row[]} rows @param {string} contestant @param {'perSecond' | 'p99Ms'} figure
 */
function columns(rows, contestant, figure) {
  const by = (/** @type {string} */ name) =>
    new Map(
      rows.filter((row) => row.contestant === name).map((row) => [row.repetition, row[figure]]),
    )
  const middle = spreadOf([...by(contestant).values()])?.median ?? 0
  const spread = ratiosTo(by(contestant), by('bare'))
  const ratio = spread
    ? `${spread.median.toFixed(2)} (${spread.min.toFixed(2)}–${spread.max.toFixed(2)})`
    : ''
  return [numberText(middle), ratio]
}
