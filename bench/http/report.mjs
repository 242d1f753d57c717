// @ts-check
import { ratiosTo, spreadOf } from '../lib/statistics.mjs'
import { markdownTable, numberText } from '../lib/table.mjs'

/**
 * @typedef {{ framework: string, contestant: string, repetition: number, perSecond: number,
 *   cpuUs: number, p99Ms: number }} Row
 * @typedef {object} About
 * @property {any} machine
 * @property {any} load
 * @property {Record<string, string>} versions
 * @property {number} repetitions
 * @property {number} connections
 * @property {Row[]} rows
 */

/** @type {Record<string, [title: string, usual: string]>} */
const titles = {
  fastify: ['Fastify', '@fastify/rate-limit'],
  express: ['Express 5', 'express-rate-limit'],
  hono: ['Hono on Node', 'hono-rate-limiter'],
}

const preface = `Made by \`npm run bench:http -- --doc\`. A route that answers with a small
JSON document: bare, with an empty hook or middleware, with a hook that only writes the five header
fields of \`rateLimit\`, with \`rateLimit\` in memory, and with the framework's usual limiter in memory.
Each server is a process of its own, loaded by autocannon in turns. All requests are admitted. Before
the measurement each contestant must refuse the third request with a limit of two. Ratios are to the
bare framework in the same repetition; ranges are the minimum and maximum of all repetitions. The load
generator shares the machine, so the server's CPU time is more telling than requests per second.
`

/**
 * documentOf returns the page of a run.
 * @param {About} about
 */
export function documentOf(about) {
  return `# What a limit costs a request\n\n${preface}\n${reportOf(about, markdownTable)}`
}

/**
 * reportOf returns all frameworks of a run as tables.
 * @param {About} about @param {typeof markdownTable} table
 */
export function reportOf({ machine, load, versions, repetitions, connections, rows }, table) {
  const frameworks = [...new Set(rows.map(({ framework }) => framework))]
  const header = ['', 'requests/s', 'of bare', 'CPU µs a request', 'of bare', 'p99 ms']
  const texts = frameworks.map((framework) => {
    const [title, usual] = titles[framework]
    const own = rows.filter((row) => row.framework === framework)
    const names = {
      bare: 'bare',
      empty: 'a hook that does nothing',
      fields: 'a hook that writes five fields',
      sluice: 'Sluice',
      usual,
    }
    const lines = Object.entries(names)
      .filter(([contestant]) => own.some((row) => row.contestant === contestant))
      .map(([contestant, name]) => [
        name,
        middle(own, contestant, 'perSecond'),
        ratio(own, contestant, 'perSecond'),
        middle(own, contestant, 'cpuUs'),
        ratio(own, contestant, 'cpuUs'),
        middle(own, contestant, 'p99Ms'),
      ])
    return `\n${table === markdownTable ? '## ' : ''}${title}\n\n${table(header, lines)}`
  })
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const loads = [load.before, load.after].map(([minute]) => minute.toFixed(2)).join(' before, ')
  return `${texts.join('')}
${repetitions} repetitions, medians; ${connections} connections; Node ${machine.node}, ${machine.cores} × ${machine.cpu}, load ${loads} after
${list.join(', ')}
`
}

/** @param {Row[]} rows @param {string} contestant @param {'perSecond' | 'cpuUs' | 'p99Ms'} figure */
function byRepetition(rows, contestant, figure) {
  return new Map(
    rows.filter((row) => row.contestant === contestant).map((row) => [row.repetition, row[figure]]),
  )
}

/** @type {typeof ratio} */
function middle(rows, contestant, figure) {
  return numberText(spreadOf([...byRepetition(rows, contestant, figure).values()])?.median ?? 0)
}

/** @param {Row[]} rows @param {string} contestant @param {'perSecond' | 'cpuUs' | 'p99Ms'} figure */
function ratio(rows, contestant, figure) {
  const values = byRepetition(rows, contestant, figure)
  const spread = ratiosTo(values, byRepetition(rows, 'bare', figure))
  if (!spread) return ''
  const [median, min, max] = [spread.median, spread.min, spread.max].map((each) => each.toFixed(2))
  return `${median} (${min}–${max})`
}
