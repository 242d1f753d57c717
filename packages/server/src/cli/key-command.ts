import type { IncomingMessage } from 'node:http'
import { addressKey, SluiceError } from 'sluice'
import { plainSecret } from '../gateway/identity.ts'
import { routeKey } from '../gateway/route-key.ts'
import type { KeyPart, RouteSettings } from '../settings.ts'
import { type Command, type Io, readArguments } from './command.ts'

const help = `Usage: sluice key OPTION…

Prints the key that identifies a client in the service. Use it in \`clients\` and \`overrides\` of a
configuration, and in calls to the API. Several options make one combined key, in their order.

Options, one for each kind of \`key\` in the configuration:
      --address ADDRESS     address
      --api-key SECRET      api-key:NAME, with any NAME
      --header NAME:VALUE   header:NAME
      --subject SUBJECT     jwt: the subject of a token
      --route NAME          route: the name of a route
  -h, --help                print this help

With "-" the value is read from standard input, which keeps a secret out of the shell history.

Examples:
  sluice key --api-key - < secret.txt
  sluice key --address 2001:db8::7
  sluice key --header x-user:alice --route search
`

const options = {
  address: { type: 'string', multiple: true },
  'api-key': { type: 'string', multiple: true },
  header: { type: 'string', multiple: true },
  subject: { type: 'string', multiple: true },
  route: { type: 'string', multiple: true },
  help: { type: 'boolean', short: 'h' },
} as const

/** keyCommand is `sluice key`. It builds the key with the gateway's own code. */
export const keyCommand: Command = {
  async run(args, io) {
    const { values, positionals, tokens } = readArguments(args, options, 'sluice key --help')
    if (values.help) return io.write(help)
    const given = tokens.flatMap((each) => (each.kind === 'option' ? [each] : []))
    if (given.length === 0 || positionals.length > 0) {
      throw mistake('name the client by options, such as --api-key -. Run sluice key --help.')
    }
    if (given.filter(({ value }) => value === '-').length > 1) {
      throw mistake('only one value can be read from standard input.')
    }
    const client = { key: [] as KeyPart[], headers: {}, address: '', subject: '', route: '' }
    for (const { name, value = '' } of given) {
      const text = value === '-' ? await readValue(io) : value
      if (text === '') throw mistake(`--${name} must not be empty.`)
      add(client, name, text)
    }
    return io.write(`${keyOf(client)}\n`)
  },
}

interface Client {
  readonly key: KeyPart[]
  readonly headers: Record<string, string>
  address: string
  subject: string
  route: string
}

function add(client: Client, option: string, value: string): void {
  const { key, headers } = client
  if (option === 'api-key') {
    // The name of the header is not part of the key, so any unique name will do.
    if (plainSecret(value) === undefined) {
      throw mistake('--api-key: servers parse this value in different ways. Use a plain token.')
    }
    key.push({ from: 'api-key', name: `secret ${key.length}` })
    headers[`secret ${key.length - 1}`] = value
  } else if (option === 'header') {
    const [, name, text] = /^([^:]+): *(.+)$/s.exec(value) ?? []
    if (!name) throw mistake('--header must be NAME:VALUE, such as x-user:alice.')
    key.push({ from: 'header', name: name.toLowerCase() })
    headers[name.toLowerCase()] = text
  } else {
    const kind = option as 'address' | 'subject' | 'route'
    if (client[kind] !== '') throw mistake(`--${kind} can be given once.`)
    key.push({ from: kind === 'subject' ? 'jwt' : kind })
    client[kind] = kind === 'address' ? addressOf(value) : value
  }
}

function keyOf({ key, headers, address, subject, route }: Client): string {
  const read = routeKey({ key, name: route } as unknown as RouteSettings, {
    addressOf: () => address,
    tokens: { claimsOf: () => ({ sub: subject }) },
  })
  // `claimsOf` answers at once here, so the key is a string and not a promise.
  return read({ headers } as IncomingMessage) as string
}

function addressOf(text: string): string {
  const key = addressKey(text)
  if (key !== undefined) return key
  throw mistake(`--address must be an IP address without a port, got ${JSON.stringify(text)}.`)
}

/** Reads standard input, without its final line break. */
async function readValue(io: Io): Promise<string> {
  if (io.inputIsTerminal) io.note('Reading the value from the terminal. End it with Ctrl-D.')
  const chunks: Buffer[] = []
  for await (const chunk of io.input()) chunks.push(chunk)
  return Buffer.concat(chunks)
    .toString()
    .replace(/\r?\n$/, '')
}

function mistake(text: string): SluiceError {
  return new SluiceError('SLUICE_OPTION', text)
}
