// @ts-check
import { parseArgs } from 'node:util'

const LEAST_REPETITIONS = 5

/**
 * @typedef {object} Options
 * @property {string[]} contestants
 * @property {string[]} workloads
 * @property {number} repetitions
 * @property {boolean} quick
 * @property {boolean} doc
 * @property {boolean} help
 */

/**
 * parseOptions parses the command line. Throws an error for users if a name is unknown.
 * @param {string[]} args
 * @param {readonly string[]} contestants all there are
 * @param {readonly string[]} workloads all there are
 * @returns {Options}
 */
export function parseOptions(args, contestants, workloads) {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string' },
      workloads: { type: 'string' },
      repetitions: { type: 'string' },
      quick: { type: 'boolean', default: false },
      doc: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const { quick, doc, help } = values
  const repetitions = Number(values.repetitions ?? (quick ? 3 : LEAST_REPETITIONS))
  if (!Number.isSafeInteger(repetitions) || repetitions < 1) {
    throw new Error(`--repetitions ${values.repetitions}: must be a whole number from 1 up.`)
  }
  return {
    contestants: named('--only', values.only, contestants),
    workloads: named('--workloads', values.workloads, workloads),
    repetitions,
    quick,
    doc,
    help,
  }
}

/** @param {string} option @param {string | undefined} list @param {readonly string[]} all */
function named(option, list, all) {
  if (list === undefined) return [...all]
  const names = list.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !all.includes(name))
  if (unknown !== undefined) {
    throw new Error(`${option} ${unknown}: no such name. There are: ${all.join(', ')}.`)
  }
  return all.filter((name) => names.includes(name))
}

/**
 * helpText returns the output of `--help`.
 * @param {readonly string[]} contestants @param {readonly string[]} workloads
 * @returns {string}
 */
export function helpText(contestants, workloads) {
  return `npm run bench -- [options]

Measures Sluice next to other in-process rate limiters, each contestant and workload in a process
of its own. Builds the library and installs the peers first. Tables go to stdout, progress to
stderr, and everything to bench/results/latest.json.

  --only a,b          contestants to run (the ratios need a peer and the floor)
  --workloads a,b     workloads to run
  --repetitions n     default ${LEAST_REPETITIONS}, with --quick 3
  --quick             fewer keys and calls: a minute or two, to see that it works
  --doc               also write docs/internals/benchmarks.md
  --help

Contestants: ${contestants.join(', ')}
Workloads: ${workloads.join(', ')}
`
}
