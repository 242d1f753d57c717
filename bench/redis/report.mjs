// @ts-check
import { ratiosTo, spreadOf } from '../lib/statistics.mjs'
import { markdownTable, numberText } from '../lib/table.mjs'
import { contestants } from './contestants.mjs'
import { workloads } from './workloads.mjs'

/**
 * @typedef {{ section: string, contestant: string, repetition: number, [figure: string]: any }} Row
 * @typedef {object} About
 * @property {any} machine
 * @property {string} server
 * @property {any} load
 * @property {Record<string, string>} versions
 * @property {number} repetitions
 * @property {Row[]} rows
 */

/** sections lists the parts of a run. */
export const sections = [...Object.keys(workloads), 'bytes', 'frozen']

const preface = `Made by \`npm run bench:redis -- --doc\`. All contestants use ioredis and one server on
the same machine, each in its own process, one after the other in each repetition. Ratios are to the
best peer in the same repetition; ranges are the minimum and maximum of all repetitions. Loopback has
almost no latency: over a network round trips weigh more, and computation in the client or in Redis
weighs less. Client and server share the machine's cores.
`

/**
 * documentOf returns the page of a run.
 * @param {About} about
 */
export function documentOf(about) {
  return `# Benchmarks on Redis\n\n${preface}\n${reportOf(about, markdownTable)}`
}

/**
 * reportOf returns all sections of a run as tables.
 * @param {About} about @param {typeof markdownTable} table
 */
export function reportOf({ machine, server, load, versions, repetitions, rows }, table) {
  const parts = sections.filter((section) => rows.some((row) => row.section === section))
  const texts = parts.map((section) => {
    const own = rows.filter((row) => row.section === section)
    if (section === 'bytes')
      return part('Bytes of Redis’s memory for a key of 11 characters', bytes)
    if (section === 'frozen') return part('Redis frozen for 3 s, 200 calls a second', frozen)
    return part(workloads[section].about, speed)
    /** @param {string} title @param {(rows: Row[]) => [string[], string[][]]} make */
    function part(title, make) {
      return `\n${table === markdownTable ? '## ' : ''}${title}\n\n${table(...make(own))}`
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
