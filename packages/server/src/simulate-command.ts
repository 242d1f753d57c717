import { readFile, writeFile } from 'node:fs/promises'
import { SluiceError } from 'sluice'
import { type Command, type Io, readArguments } from './command.ts'
import { readConfig } from './config/read-config.ts'
import { reportProblems } from './report-problems.ts'
import type { Settings } from './settings.ts'
import { fleetCommand } from './simulate/fleet/fleet-command.ts'
import { htmlReport } from './simulate/html-report.ts'
import { FORMATS } from './simulate/log-format.ts'
import type { Report } from './simulate/report.ts'
import { createConfigRuleSet, createRuleSet, parseRuleSet } from './simulate/rule-set.ts'
import { simulateLog, simulateScenario } from './simulate/run.ts'
import { SCENARIOS, type ScenarioOptions } from './simulate/scenario.ts'
import { textReport } from './simulate/text-report.ts'
import type { VirtualClock } from './simulate/virtual-clock.ts'

const help = `Usage: sluice simulate [FILE…] [OPTIONS]

Tells what limits would have done to the traffic of a log, or of a made-up scenario, and suggests
limits from what clients use. The limiter that serves production decides, on a clock that follows
the log. Reads standard input when there is no FILE, or for "-"; several files one after the other.
Logs are plain or gzip, and of any size.

Rules; several of either are compared in one pass, without any you get suggestions alone:
      --rule RULES         such as '60/1m burst 20'; several with a comma between must all allow:
                           '5/1s, 1000/1d fixed-window'
      --config FILE        the tiers, clients and overrides of a configuration

Logs:
      --format FORMAT      ${FORMATS.join(', ')} (default: found out)
      --key KEY            combined: who is a client, address (default) or user
      --time-field NAME    json and csv: the fields to take; a.b is the field b of a
      --key-field NAME
      --cost-field NAME
      --tier-field NAME

Scenarios, in place of a log:
      --scenario NAME      ${Object.entries(SCENARIOS)
        .map(([name, about]) => `${name.padEnd(12)}${about}`)
        .join(`\n${' '.repeat(27)}`)}
      --clients N          how many (default 100)
      --rate N             requests a second, of all together (default 100)
      --for DURATION       how long, such as 90s, 10m or 1d (default 10m)
      --seed N             another number is another run (default 1)

Output:
      --json               the report as JSON, see docs/simulate.md
      --html FILE          a page with plots, too
      --top N              clients refused most that are listed (default 10)
      --max-clients N      clients followed one by one (default 2000000)
  -h, --help               print this help

      --fleet              many nodes that share one Redis; see --fleet --help

Exit code: 0 when there is a report, 2 for a mistake or a log of which no line can be read.

Examples:
  sluice simulate access.log
  sluice simulate access.log.gz --rule '60/1m burst 20' --rule '100/1m sliding-window-counter'
  sluice simulate decisions.log --config sluice.yaml --html report.html
  sluice simulate --scenario retry-storm --rule '60/1m'
`

const options = {
  rule: { type: 'string', multiple: true },
  config: { type: 'string', multiple: true },
  format: { type: 'string' },
  key: { type: 'string' },
  'time-field': { type: 'string' },
  'key-field': { type: 'string' },
  'cost-field': { type: 'string' },
  'tier-field': { type: 'string' },
  scenario: { type: 'string' },
  clients: { type: 'string' },
  rate: { type: 'string' },
  for: { type: 'string' },
  seed: { type: 'string' },
  json: { type: 'boolean' },
  html: { type: 'string' },
  top: { type: 'string' },
  'max-clients': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

type Values = ReturnType<typeof readArguments<typeof options>>['values']

const LOG_OPTIONS = [
  'format',
  'key',
  'time-field',
  'key-field',
  'cost-field',
  'tier-field',
] as const
const SCENARIO_OPTIONS = ['clients', 'rate', 'for', 'seed'] as const

/** simulateCommand is `sluice simulate`: it tells what limits would have done. */
export const simulateCommand: Command = {
  async run(args, io) {
    if (args.includes('--fleet')) return fleetCommand.run(args, io)
    const { values, positionals } = readArguments(args, options, 'sluice simulate --help')
    if (values.help) return io.write(help)
    const ruleSets = await readRuleSets(values, io)
    const common = {
      ruleSets,
      top: wholeOf(values, 'top', 10, 0, 1_000),
      maxClients: wholeOf(values, 'max-clients', 2_000_000, 1, 16_000_000),
    }
    const report =
      values.scenario === undefined
        ? await simulateLog({ ...common, ...logOf(values, positionals, io) })
        : simulateScenario({ ...common, scenario: scenarioOf(values, positionals) })
    if (values.html !== undefined) await writeHtml(values.html, report)
    await io.write(values.json ? `${JSON.stringify(report, undefined, 2)}\n` : textReport(report))
  },
}

/** Reads the rules at once, so that a mistake in them is told before a long log is read. */
async function readRuleSets(values: Values, io: Io) {
  const rules = (values.rule ?? []).map((text) => ({ text, rules: parseRuleSet(text) }))
  const configs: { file: string; settings: Settings }[] = []
  for (const file of values.config ?? [])
    configs.push({ file, settings: await settingsOf(file, io) })
  const trustsTier = values['tier-field'] !== undefined
  return (clock: VirtualClock, maxKeys: number) => [
    ...rules.map(({ text, rules }) => createRuleSet(text, rules, { clock, maxKeys })),
    ...configs.map(({ file, settings }) =>
      createConfigRuleSet(file, settings, { clock, maxKeys }, trustsTier),
    ),
  ]
}

async function settingsOf(file: string, io: Io): Promise<Settings> {
  const text = await readFile(file, 'utf8').catch((cause: Error) => {
    throw new SluiceError(
      'SLUICE_OPTION',
      `cannot read ${JSON.stringify(file)}: ${cause.message}. Give a readable configuration.`,
      { cause },
    )
  })
  return reportProblems(file, io, () => readConfig(text, file, process.env))
}

function logOf(values: Values, files: readonly string[], io: Io) {
  refuseOthers(values, SCENARIO_OPTIONS, 'goes with --scenario')
  const format = FORMATS.find((each) => each === values.format)
  if (values.format !== undefined && format === undefined) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--format must be one of ${FORMATS.join(', ')}, got ${JSON.stringify(values.format)}.`,
    )
  }
  if (files.length === 0 && io.inputIsTerminal) {
    io.note('Reading a log from the terminal; Ctrl-D ends it. Or: sluice simulate FILE')
  }
  return {
    files: files.length === 0 ? ['-'] : files,
    input: io.input,
    status: io.status,
    log: {
      format,
      key: values.key,
      fields: {
        time: values['time-field'],
        key: values['key-field'],
        cost: values['cost-field'],
        tier: values['tier-field'],
      },
    },
  }
}

function scenarioOf(values: Values, files: readonly string[]): ScenarioOptions {
  refuseOthers(values, LOG_OPTIONS, 'is for logs, and --scenario reads none')
  if (files.length > 0) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--scenario reads no log, got ${JSON.stringify(files[0])}. Give the one or the other.`,
    )
  }
  const names = Object.keys(SCENARIOS) as (keyof typeof SCENARIOS)[]
  const scenario = names.find((name) => name === values.scenario)
  if (scenario === undefined) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--scenario must be one of ${names.join(', ')}, got ${JSON.stringify(values.scenario)}.`,
    )
  }
  return {
    scenario,
    clients: wholeOf(values, 'clients', 100, 1, 10_000_000),
    ratePerSecond: wholeOf(values, 'rate', 100, 1, 1_000_000),
    forMs: durationOf(values.for ?? '10m'),
    seed: wholeOf(values, 'seed', 1, 0, 2 ** 32 - 1),
  }
}

function refuseOthers(values: Values, names: readonly (keyof Values)[], why: string): void {
  const found = names.find((name) => values[name] !== undefined)
  if (found === undefined) return
  throw new SluiceError('SLUICE_OPTION', `--${found} ${why}. Run sluice simulate --help.`)
}

function wholeOf(
  values: Values,
  name: 'top' | 'max-clients' | 'clients' | 'rate' | 'seed',
  otherwise: number,
  least: number,
  most: number,
): number {
  const text = values[name]
  if (text === undefined) return otherwise
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new SluiceError(
    'SLUICE_OPTION',
    `--${name} must be a whole number from ${least} to ${most}, got ${JSON.stringify(text)}.`,
  )
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1e3, m: 6e4, h: 3.6e6, d: 8.64e7 }

function durationOf(text: string): number {
  const found = /^(\d{1,6})([smhd])$/.exec(text)
  const ms = found ? Number(found[1]) * UNIT_MS[found[2]] : 0
  if (ms > 0 && ms <= 400 * UNIT_MS.d) return ms
  throw new SluiceError(
    'SLUICE_OPTION',
    `--for must be a duration up to 400 days, such as 90s, 10m, 1h or 1d, got ${JSON.stringify(text)}.`,
  )
}

async function writeHtml(file: string, report: Report): Promise<void> {
  try {
    await writeFile(file, htmlReport(report))
  } catch (cause) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `cannot write ${JSON.stringify(file)}: ${(cause as Error).message}. Give another --html file.`,
      { cause },
    )
  }
}
