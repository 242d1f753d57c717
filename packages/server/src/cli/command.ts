import { type ParseArgsConfig, parseArgs } from 'node:util'
import { SluiceError } from 'sluice'
import { nearest } from '../config/nearest.ts'

/** Io is what a command sees of its process, so that a test can run it without one. */
export interface Io {
  /** Standard input, opened only when called. Leaving the loop early closes it. */
  input(): AsyncIterable<Buffer>
  /** True when a person types the input. */
  readonly inputIsTerminal: boolean
  /** Writes to standard output; resolves once more may be written, rejects when nobody reads. */
  write(text: string): Promise<void>
  /** Writes one line to standard error. */
  note(line: string): void
  /** Shows a passing line in place of the last one; '' takes it away. Only on a terminal. */
  readonly status?: ((text: string) => void) | undefined
}

/**
 * Command is one word of the `sluice` command line. `run` gets the arguments after that word and
 * resolves when the work is done. It throws a `SluiceError` for a mistake of the user, which is
 * printed without a stack and ends the process with exit code 2.
 */
export interface Command {
  run(args: readonly string[], io: Io): Promise<void>
}

type Options = NonNullable<ParseArgsConfig['options']>

type Arguments<O extends Options> = ReturnType<
  typeof parseArgs<{ args: string[]; options: O; allowPositionals: true; tokens: true }>
>

/**
 * readArguments splits arguments into flags and positionals (`tokens` has them in order), and throws `SLUICE_OPTION` for a flag
 * that `options` does not name. `help` is the command that explains them, told in the error.
 */
export function readArguments<const O extends Options>(
  args: readonly string[],
  options: O,
  help: string,
): Arguments<O> {
  try {
    return parseArgs({
      args: withNegatives(args, options),
      options,
      allowPositionals: true,
      tokens: true,
    })
  } catch (cause) {
    const [problem] = (cause as Error).message.split('. ')
    const name = /^Unknown option '--(.*)'$/.exec(problem)?.[1] ?? ''
    const hint = didYouMean(name, Object.keys(options), '--')
    throw new SluiceError('SLUICE_OPTION', `${problem}.${hint} Run ${help} for what is accepted.`, {
      cause,
    })
  }
}

/** didYouMean is a question for an error message, such as ` Did you mean --rule?`, or empty. */
export function didYouMean(name: string, names: readonly string[], prefix = ''): string {
  const near = nearest(name, names)
  return near === undefined ? '' : ` Did you mean ${prefix}${near}?`
}

/** Joins `--top -1` to `--top=-1`: no flag is a number, and the option itself says what it takes. */
function withNegatives(args: readonly string[], options: Options): string[] {
  const joined: string[] = []
  for (const arg of args) {
    const name = joined.at(-1) ?? ''
    const isValue = /^-\d/.test(arg) && options[name.slice(2)]?.type === 'string'
    if (isValue && name.startsWith('--')) joined.splice(-1, 1, `${name}=${arg}`)
    else joined.push(arg)
  }
  return joined
}
