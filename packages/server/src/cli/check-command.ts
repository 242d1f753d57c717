import { createLimiter, type Decision, parseRule, SluiceError } from 'sluice'
import { openStore } from '../app/open-store.ts'
import { storeDefaults } from '../settings.ts'
import { type Command, readArguments } from './command.ts'

const help = `Usage: sluice check KEY [OPTIONS]

Makes one decision for KEY, and spends the cost if it is allowed. Prints the decision as JSON; the
exit code is 0 if it is allowed and 1 if it is refused. Calls a running service, or with --rule
decides on a store directly.

Options:
      --cost N        units to spend (default 1)
      --api URL       URL of the service's API (default http://127.0.0.1:8081)
      --token TOKEN   admin token; default: the environment variable SLUICE_TOKEN
      --tier TIER     decide by this tier instead of the key's own
      --route NAME    decide by the rules of this route
      --rule RULE     decide by this rule without a service, such as '100/1m burst 20'; repeatable
      --store URL     store for --rule: redis://… (default: memory, which is lost on exit)
  -h, --help          print this help
`

const options = {
  cost: { type: 'string' },
  api: { type: 'string' },
  token: { type: 'string' },
  tier: { type: 'string' },
  route: { type: 'string' },
  rule: { type: 'string', multiple: true },
  store: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

/** checkCommand asks for one decision. */
export const checkCommand: Command = {
  async run(args, io) {
    const { values, positionals } = readArguments(args, options, 'sluice check --help')
    if (values.help) return io.write(help)
    const [key, ...rest] = positionals
    if (key === undefined || rest.length > 0) {
      throw new SluiceError(
        'SLUICE_OPTION',
        'check takes exactly one KEY. Run sluice check --help.',
      )
    }
    const cost = Number(values.cost ?? 1)
    const { rule: rules, store, api, tier, route, token } = values
    const decision = rules
      ? await askStore(key, cost, rules, store)
      : await askService(api ?? 'http://127.0.0.1:8081', { key, cost, tier, route }, token)
    await io.write(`${JSON.stringify(decision, undefined, 2)}\n`)
    if (!decision.allowed) process.exitCode = 1
  },
}

async function askStore(
  key: string,
  cost: number,
  rules: readonly string[],
  url: string | undefined,
): Promise<Decision> {
  const { store, close } = openStore(
    {
      kind: url === undefined ? 'memory' : 'redis',
      urls: url === undefined ? [] : [url],
      ...storeDefaults,
      maxKeys: 1,
      timeoutMs: 5_000,
      onFailure: 'closed',
    },
    () => {},
  )
  const parsed = rules.map((rule) => parseRule(rule))
  const waiting = store.kind === 'async' ? { timeoutMs: 5_000, onStoreFailure: 'closed' } : {}
  try {
    return await createLimiter(parsed, { store, ...waiting } as object).check(key, cost)
  } finally {
    close()
  }
}

async function askService(
  api: string,
  body: object,
  token = process.env.SLUICE_TOKEN,
): Promise<Decision> {
  const headers = {
    'content-type': 'application/json',
    ...(token ? { authorization: `Bearer ${token}` } : {}),
  }
  let response: Response
  try {
    const url = new URL('/v1/check', api)
    response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  } catch (cause) {
    const why = ((cause as Error).cause as Error | undefined)?.message ?? (cause as Error).message
    throw new SluiceError(
      'SLUICE_OPTION',
      `cannot reach the API at ${api}: ${why}. Start it with sluice serve, or use --rule.`,
      { cause },
    )
  }
  const answer = (await response.json()) as Decision & { detail?: string }
  if (response.ok) return answer
  throw new SluiceError('SLUICE_OPTION', `${api} answers ${response.status}: ${answer.detail}`)
}
