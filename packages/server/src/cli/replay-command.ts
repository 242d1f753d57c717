import { createReadStream } from 'node:fs'
import { SluiceError } from 'sluice'
import { type Command, type Io, readArguments } from './command.ts'
import { replayStream } from './replay-stream.ts'

const help = `Usage: sluice replay [FILE]

Answers each request of a recorded stream with "allow" or "deny". It computes with integers, and
takes the time from the stream. Reads standard input when FILE is missing or "-".

Input, line by line:
  CAPACITY                     tokens of a full bucket; every client has its own bucket
  WINDOW                       time in which an empty bucket becomes full
  COUNT                        number of lines that follow; later lines are not read
  request CLIENT TIMESTAMP     printed as "allow" or "deny"; other lines print nothing

The first three may share a line. All numbers are integers of any size; WINDOW and TIMESTAMP are in
the same unit, which you choose. Words are separated by spaces or tabs.

Options:
  -h, --help    print this help

Exit code: 0 when all lines were answered, 2 for malformed input or a file that cannot be read.

Example:
  $ printf '2 10 3\\nrequest alice 0\\nrequest alice 0\\nrequest alice 1\\n' | sluice replay
  allow
  allow
  deny
`

/** replayCommand is `sluice replay [FILE]`: it prints the answers to a recorded request stream. */
export const replayCommand: Command = {
  async run(args, io) {
    const options = { help: { type: 'boolean', short: 'h' } } as const
    const { values, positionals } = readArguments(args, options, 'sluice replay --help')
    if (values.help) return io.write(help)
    if (positionals.length > 1) {
      throw new SluiceError(
        'SLUICE_OPTION',
        `replay reads one file, got ${positionals.length}. Join them first, or run it for each.`,
      )
    }
    await replayStream(source(positionals[0] ?? '-', io), io.write)
  },
}

async function* source(file: string, io: Io): AsyncGenerator<Buffer> {
  const fromInput = file === '-'
  if (fromInput && io.inputIsTerminal) {
    io.note('Type capacity, window, count and the requests; Ctrl-D ends. Or: sluice replay FILE')
  }
  try {
    yield* fromInput ? io.input() : createReadStream(file)
  } catch (cause) {
    const name = fromInput ? 'standard input' : JSON.stringify(file)
    throw new SluiceError(
      'SLUICE_OPTION',
      `cannot read ${name}: ${(cause as Error).message}. Give a readable file, or - for standard input.`,
      { cause },
    )
  }
}
