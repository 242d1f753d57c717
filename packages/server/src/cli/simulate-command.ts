import { open, readFile, writeFile } from 'node:fs/promises'
import { SluiceError } from 'sluice'
import { readConfig } from '../config/read-config.ts'
import type { Settings } from '../settings.ts'
import { pathNeed } from '../simulate/engine/config-places.ts'
import { createConfigProposal } from '../simulate/engine/config-proposal.ts'
import { createProposal, parseProposal } from '../simulate/engine/proposal.ts'
import { simulateLog, simulateScenario } from '../simulate/engine/run.ts'
import type { VirtualClock } from '../simulate/engine/virtual-clock.ts'
import type { PathNeed } from '../simulate/log/http-request.ts'
import { FORMATS } from '../simulate/log/log-format.ts'
import { htmlReport } from '../simulate/report/html-report.ts'
import { textReport } from '../simulate/report/text-report.ts'
import {
  mostRequests,
  SCENARIOS,
  type ScenarioName,
  type ScenarioOptions,
} from '../simulate/scenario/scenario.ts'
import { type Command, type Io, readArguments } from './command.ts'
import { fleetCommand } from './fleet-command.ts'
import { choiceOption, durationOption, wholeOption } from './option-values.ts'
import { reportProblems } from './report-problems.ts'
import { version } from './version.ts'

const help = `Usage: sluice simulate [FILE…] [OPTIONS]

Shows what limits would have done to the traffic in a log, or in a generated scenario, and suggests
limits from what clients use. The limiter that serves production makes the decisions, on a clock
that follows the log. Reads standard input when there is no FILE, or for "-"; several files are read
in their order. Logs are plain or gzip, and of any size.

Rules; several are compared in one pass, and without any the report has only suggestions:
      --rule RULES         such as '60/1m burst 20'; all rules of a comma-separated list must allow:
                           '5/1s, 1000/1d fixed-window'
      --config FILE        the tiers, clients, overrides and routes of a configuration

Logs:
      --format FORMAT      ${FORMATS.join(', ')} (default: detected)
      --key KEY            combined: address (default) or user identifies the client
      --time-field NAME    json and csv: names of the fields; a.b is the field b of a
      --key-field NAME
      --cost-field NAME
      --tier-field NAME
      --path-field NAME    json and csv: what the routes of --config match
      --method-field NAME
      --host-field NAME

Scenarios, instead of a log:
      --scenario NAME      ${Object.entries(SCENARIOS)
        .map(([name, about]) => `${name.padEnd(12)}${about}`)
        .join(`\n${' '.repeat(27)}`)}
      --clients N          number of clients (default 100)
      --rate N             requests per second of all clients together (default 100)
      --for TIME           duration, such as 90s, 10m or 1d (default 10m)
      --seed N             seed of the random traffic (default 1)

Output:
      --json               print the report as JSON, see docs/operate/simulate.md
      --html FILE          also write a page with plots
      --top N              number of most refused clients to list (default 10)
      --max-clients N      number of clients to track individually (default 2000000)
  -h, --help               print this help

      --fleet              simulate many nodes that share one Redis; see --fleet --help

Exit code: 0 when there is a report, 2 for a mistake or a log without a readable line.

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
  'path-field': { type: 'string' },
  'method-field': { type: 'string' },
  'host-field': { type: 'string' },
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
  'path-field',
  'method-field',
  'host-field',
] as const
const ROUTE_OPTIONS = ['path-field', 'method-field', 'host-field'] as const
const SCENARIO_OPTIONS = ['clients', 'rate', 'for', 'seed'] as const

/** The largest number of requests of a scenario: about a minute of work for one rule. */
const MOST_REQUESTS = 50_000_000

/** simulateCommand is `sluice simulate`: it shows what limits would have done to traffic. */
export const simulateCommand: Command = {
  async run(args, io) {
    if (args.includes('--fleet')) return fleetCommand.run(args, io)
    const { values, positionals } = readArguments(args, options, 'sluice simulate --help')
    if (values.help) return io.write(help)
    const { html } = values
    // Fail before reading a long log if the page cannot be written.
    if (html !== undefined) await writing(html, async () => (await open(html, 'a')).close())
    if (values.config === undefined) refuseOthers(values, ROUTE_OPTIONS, 'needs --config')
    const { proposals, paths } = await readProposals(values, io)
    const common = {
      proposals,
      top: wholeOption('--top', values.top ?? '10', 0, 1_000),
      maxClients: wholeOption('--max-clients', values['max-clients'] ?? '2000000', 1, 16_000_000),
    }
    const report =
      values.scenario === undefined
        ? await simulateLog({ ...common, ...logOf(values, positionals, paths, io) })
        : simulateScenario({
            ...common,
            scenario: scenarioOf(values.scenario, values, positionals),
            status: io.status,
          })
    await io.write(values.json ? `${JSON.stringify(report, undefined, 2)}\n` : textReport(report))
    if (html === undefined) return
    const made = { command: commandText(args), version: version(), time: new Date().toISOString() }
    await writing(html, () => writeFile(html, htmlReport(report, made)))
    io.note(`Wrote ${html}`)
  },
}

/** Quotes the command for a shell. */
function commandText(args: readonly string[]): string {
  const quoted = args.map((arg) =>
    /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`,
  )
  return ['sluice simulate', ...quoted].join(' ')
}

/** Parses the rules first, so that a mistake in them is reported before a long log is read. */
async function readProposals(values: Values, io: Io) {
  const rules = (values.rule ?? []).map((text) => ({ text, rules: parseProposal(text) }))
  const configs: { file: string; settings: Settings }[] = []
  for (const file of values.config ?? [])
    configs.push({ file, settings: await settingsOf(file, io) })
  const trustsTier = values['tier-field'] !== undefined
  const needs = configs.map(({ settings }) => pathNeed(settings))
  const strictest = ['required', 'wanted', 'unwanted'] as const
  const paths = strictest.find((need) => needs.includes(need)) ?? 'unwanted'
  const proposals = (clock: VirtualClock, maxKeys: number) => [
    ...rules.map(({ text, rules }) => createProposal(text, rules, { clock, maxKeys })),
    ...configs.map(({ file, settings }) =>
      createConfigProposal(file, settings, { clock, maxKeys }, trustsTier),
    ),
  ]
  return { proposals, paths }
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

function logOf(values: Values, files: readonly string[], paths: PathNeed, io: Io) {
  refuseOthers(values, SCENARIO_OPTIONS, 'needs --scenario')
  const format =
    values.format === undefined ? undefined : choiceOption('--format', values.format, FORMATS)
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
        path: values['path-field'],
        method: values['method-field'],
        host: values['host-field'],
      },
      paths,
    },
  }
}

function scenarioOf(name: string, values: Values, files: readonly string[]): ScenarioOptions {
  refuseOthers(values, LOG_OPTIONS, 'is for logs, and --scenario reads no log')
  if (files.length > 0) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--scenario reads no log, got ${JSON.stringify(files[0])}. Give a file or --scenario.`,
    )
  }
  const scenario = {
    scenario: choiceOption('--scenario', name, Object.keys(SCENARIOS) as ScenarioName[]),
    clients: wholeOption('--clients', values.clients ?? '100', 1, 10_000_000),
    ratePerSecond: wholeOption('--rate', values.rate ?? '100', 1, 1_000_000),
    forMs: durationOption('--for', values.for ?? '10m', 1),
    seed: wholeOption('--seed', values.seed ?? '1', 0, 2 ** 32 - 1),
  }
  const requests = mostRequests(scenario)
  if (requests <= MOST_REQUESTS) return scenario
  throw new SluiceError(
    'SLUICE_OPTION',
    `the scenario has up to ${requests.toLocaleString('en')} requests, the maximum is ` +
      `${MOST_REQUESTS.toLocaleString('en')}. Lower --rate or --for.`,
  )
}

function refuseOthers(values: Values, names: readonly (keyof Values)[], why: string): void {
  const found = names.find((name) => values[name] !== undefined)
  if (found === undefined) return
  throw new SluiceError('SLUICE_OPTION', `--${found} ${why}. Run sluice simulate --help.`)
}

async function writing(file: string, write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (cause) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `cannot write ${JSON.stringify(file)}: ${(cause as Error).message}. Give another --html file.`,
      { cause },
    )
  }
}
