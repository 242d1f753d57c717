import { readFile } from 'node:fs/promises'
import { type Rule, SluiceError } from 'sluice'
import { secretNote } from '../config/bare-secrets.ts'
import { configJsonSchema } from '../config/json-schema.ts'
import { readConfig } from '../config/read-config.ts'
import { strayNote } from '../config/stray-keys.ts'
import { isCatchAll } from '../gateway/router.ts'
import type { KeyPart, Listen, RouteSettings, Settings } from '../settings.ts'
import { type Command, readArguments } from './command.ts'
import { reportProblems } from './report-problems.ts'

const help = `Usage: sluice validate FILE

Checks a configuration without starting anything, and prints a summary. Variables such as \${NAME}
are taken from the environment.

Options:
      --schema  print the JSON Schema of a configuration, for editors
  -h, --help    print this help

Each mistake is printed as FILE:LINE:COLUMN  path: what is wrong. docs/reference/config.md lists all
fields. It warns of names in \`clients\` and \`overrides\` that no request can have as its key, and of a
\`key\` such as header:authorization, which exposes secrets in logs.

Exit code: 0 for a valid file, 2 for a file with mistakes or that cannot be read.

Example:
  $ sluice validate sluice.yaml
`

/** validateCommand is `sluice validate FILE`: it reports what is wrong with a configuration. */
export const validateCommand: Command = {
  async run(args, io) {
    const options = {
      help: { type: 'boolean', short: 'h' },
      schema: { type: 'boolean' },
    } as const
    const { values, positionals } = readArguments(args, options, 'sluice validate --help')
    if (values.help) return io.write(help)
    if (values.schema) return io.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
    if (positionals.length !== 1) {
      const count = positionals.length === 0 ? 'none' : positionals.length
      throw new SluiceError(
        'SLUICE_OPTION',
        `validate checks one file, got ${count}. Run: sluice validate FILE`,
      )
    }
    const [file] = positionals
    const text = await readFile(file, 'utf8').catch((cause: Error) => {
      throw new SluiceError(
        'SLUICE_OPTION',
        `cannot read ${JSON.stringify(file)}: ${cause.message}. Give a readable file.`,
        { cause },
      )
    })
    const read = () => readConfig(text, file, process.env)
    const settings = await reportProblems(file, io, read)
    for (const [problem, hint] of [strayNote(settings), secretNote(settings)]) {
      if (!problem) continue
      io.note(`${file}: warning: ${problem}`)
      io.note(`  ${hint}`)
    }
    return io.write(summaryOf(file, settings))
  },
}

function summaryOf(file: string, settings: Settings): string {
  const { store, tiers, defaultTier, routes } = settings
  const lines = [`${file} is valid.`, '', 'Tiers:']
  for (const [name, rules] of Object.entries(tiers)) {
    const mark = name === defaultTier ? ' (default)' : ''
    lines.push(`  ${name}${mark}: ${rulesText(rules)}`)
  }
  const listed = Object.keys(settings.clients).length
  const own = Object.keys(settings.overrides).length
  lines.push(`Clients: ${listed} in a listed tier, ${own} with overrides`)
  lines.push('', 'Routes (the first match applies):')
  for (const route of routes) lines.push(`  ${routeText(route)}`)
  if (routes.every(({ upstream }) => !upstream)) {
    lines.push('  No upstream: the gateway answers 404, and only the API makes decisions.')
  } else if (!routes.some(isCatchAll)) {
    lines.push('  Other requests: 404, because no route matches them. A last route /** would.')
  }
  const urls = store.urls.map((url) => new URL(url).host).join(', ')
  const where = urls === '' ? '' : ` at ${urls}, on failure: ${store.onFailure}`
  lines.push('', `Store: ${store.kind}${where}`)
  lines.push(`Gateway: ${listenText(settings.listen)}`, `API: ${listenText(settings.api)}`)
  lines.push(`Admin tokens: ${tokensText(settings)}`)
  if (settings.decisionLog) lines.push(`Decision log: ${settings.decisionLog.file}`)
  lines.push('')
  return lines.join('\n')
}

/** Counts the tokens, and never shows them. */
function tokensText({ admin: { tokens } }: Settings): string {
  if (tokens.length === 0) return 'none, so only this machine may call the API'
  const reading = tokens.filter(({ access }) => access === 'read').length
  return `${tokens.length}${reading > 0 ? `, ${reading} of them read-only` : ''}`
}

function listenText({ host, port }: Listen): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

function routeText(route: RouteSettings): string {
  const { name, methods, host, path, cost, rules, upstream } = route
  const what = [...methods, `${host}${path}`].join(' ')
  const words = [
    ...Object.entries(route.headers).map(([header, value]) => `if ${header} is ${value}`),
    route.isOpen ? 'open' : rules ? rulesText(rules) : "the tier's rules",
    ...(route.isOpen ? [] : [`by ${route.key.map(keyText).join(' and ')}`]),
    ...(cost === 1 ? [] : [`cost ${cost}`]),
    ...(route.shadow ? ['shadow'] : []),
    upstream ? `to ${upstream.name}` : 'to no upstream',
  ]
  return `${name === what ? '' : `${name}: `}${what} (${words.join(', ')})`
}

function keyText(part: KeyPart): string {
  return 'name' in part ? `${part.from}:${part.name}` : part.from
}

function rulesText(rules: readonly Rule[]): string {
  return rules.map(ruleText).join(' and ')
}

function ruleText(rule: Rule): string {
  const { name, algorithm, limit, perUs, capacity, params } = rule
  if (capacity === Number.POSITIVE_INFINITY) return 'unlimited'
  const burst = capacity === limit ? '' : `, at most ${capacity} at once`
  const called = name === algorithm.name ? '' : ` "${name}"`
  const per = params.per === undefined ? `in ${durationText(perUs)}` : `per ${params.per}`
  return `${limit} ${per}${wordsText(rule)}${burst} (${algorithm.name}${called})`
}

/**
 * The parameters that choose the windows, unless default: ` align clock`, ` zone Europe/Berlin`.
 */
function wordsText({ algorithm, limit, params }: Rule): string {
  return Object.entries(algorithm.params)
    .filter(([name, { kind, fallback }]) => kind === 'word' && params[name] !== fallback(limit))
    .map(([name]) => ` ${name} ${params[name]}`)
    .join('')
}

const units = [
  ['d', 86_400_000_000],
  ['h', 3_600_000_000],
  ['m', 60_000_000],
  ['s', 1_000_000],
] as const

function durationText(us: number): string {
  const [unit, size] = units.find(([, each]) => us % each === 0) ?? ['ms', 1_000]
  return `${us / size}${unit}`
}
