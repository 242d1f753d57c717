import { SluiceError } from 'sluice'
import { StartError } from '../start-error.ts'
import { type Command, didYouMean, type Io, readArguments } from './command.ts'
import { version } from './version.ts'

/** Word is a command of the table. Its module is imported lazily: each loads only what it needs. */
interface Word {
  readonly name: string
  readonly summary: string
  load(): Promise<Command>
}

const words: readonly Word[] = [
  {
    name: 'serve',
    summary: 'start the gateway and the API',
    load: async () => (await import('./serve-command.ts')).serveCommand,
  },
  {
    name: 'validate',
    summary: 'check a configuration file and print a summary',
    load: async () => (await import('./validate-command.ts')).validateCommand,
  },
  {
    name: 'check',
    summary: 'make one decision for a key',
    load: async () => (await import('./check-command.ts')).checkCommand,
  },
  {
    name: 'key',
    summary: 'print the key that identifies a client in the service',
    load: async () => (await import('./key-command.ts')).keyCommand,
  },
  {
    name: 'simulate',
    summary: 'show what limits would have done to the traffic in a log',
    load: async () => (await import('./simulate-command.ts')).simulateCommand,
  },
  {
    name: 'replay',
    summary: 'answer a recorded stream of requests with allow or deny',
    load: async () => (await import('./replay-command.ts')).replayCommand,
  },
]

const help = `Usage: sluice COMMAND [OPTIONS]

Commands:
${words.map(({ name, summary }) => `  ${name.padEnd(12)}${summary}`).join('\n')}

Options:
  -h, --help    print this help, or the help of a command: sluice COMMAND --help
  -v, --version print the version

Examples:
  sluice serve
  sluice serve --config sluice.yaml
  sluice validate sluice.yaml
  sluice check alice --cost 2
  sluice key --api-key - < secret.txt
  sluice simulate access.log --rule '60/1m burst 20'
  sluice simulate --fleet --nodes 10,100 --lease 0,10
  sluice replay requests.txt
  sluice replay < requests.txt > answers.txt
`

const io: Io = {
  input: () => process.stdin,
  get inputIsTerminal() {
    return process.stdin.isTTY === true
  },
  write: (text) =>
    new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => (error ? reject(error) : resolve()))
    }),
  note: (line) => {
    process.stderr.write(`${line}\n`)
  },
  status: process.stderr.isTTY ? (text) => void process.stderr.write(`\r\x1b[K${text}`) : undefined,
}

async function run(argv: readonly string[]): Promise<void> {
  const found = argv.findIndex((argument) => !argument.startsWith('-'))
  const at = found === -1 ? argv.length : found
  const options = {
    help: { type: 'boolean', short: 'h' },
    version: { type: 'boolean', short: 'v' },
  } as const
  const { values } = readArguments(argv.slice(0, at), options, 'sluice --help')
  if (values.help || argv[at] === 'help') return io.write(help)
  if (values.version) return io.write(`${version()}\n`)
  if (at === argv.length) {
    throw new SluiceError('SLUICE_OPTION', 'a command is missing. Run sluice --help for the list.')
  }
  const word = words.find(({ name }) => name === argv[at])
  if (word === undefined) {
    const hint = didYouMean(
      argv[at],
      words.map(({ name }) => name),
    )
    throw new SluiceError(
      'SLUICE_OPTION',
      `unknown command ${JSON.stringify(argv[at])}.${hint} Run sluice --help for the list.`,
    )
  }
  const command = await word.load()
  await command.run(argv.slice(at + 1), io)
}

/** Maps an error to the exit code: 2 for the user's mistake, 1 for a failed start or write. */
function exitCodeOf(error: NodeJS.ErrnoException): number {
  // The reader, such as head, closed the pipe early, which is not a failure.
  if (error.code === 'EPIPE') return 0
  if (error instanceof SluiceError) {
    io.note(`sluice: ${error.message}`)
    return 2
  }
  if (error instanceof StartError) {
    io.note(`sluice: ${error.message}`)
    return 1
  }
  if (error.syscall !== 'write') throw error
  io.note(`sluice: cannot write the output: ${error.message}`)
  return 1
}

// The write callback reports failures; an 'error' event without a listener would end the process.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})

try {
  await run(process.argv.slice(2))
} catch (error) {
  process.exitCode = exitCodeOf(error as NodeJS.ErrnoException)
  // Flush both pipes, then exit: an open connection would keep the process alive.
  process.stderr.write('', () => process.stdout.write('', () => process.exit()))
}
