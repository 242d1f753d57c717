import { type ParseArgsConfig, parseArgs } from 'node:util'
import { SluiceError } from 'sluice'
import { nearest } from '../config/nearest.ts'

/** Io is what a command sees of its process, so that a test can run it without one. */
export interface Io {
  /** Standard input, opened only when called. Leaving the loop early closes it. */
  input(): AsyncIterable<Buffer>
  /** True when standard input is a terminal. */
  readonly inputIsTerminal: boolean
  /** Writes to standard output. Resolves once it is flushed, rejects when the reader closed it. */
  write(text: string): Promise<void>
  /** Writes one line to standard error. */
  note(line: string): void
  /** Replaces the status line; '' clears it. Undefined unless standard error is a terminal. */
  readonly status?: ((text: string) => void) | undefined
}

/**
 * Command is one subcommand of `sluice`. `run` gets the arguments after its name and resolves when
 * the work is done. It throws a `SluiceError` for a mistake of the user, which the CLI prints
 * without a stack before it exits with code 2.
 */
export interface Command {
  run(args: readonly string[], io: Io): Promise<void>
}

type Options = NonNullable<ParseArgsConfig['options']>

type Arguments<O extends Options> = ReturnType<
  typeof parseArgs<{ args: string[]; options: O; allowPositionals: true; tokens: true }>
>

/**
 * readArguments splits arguments into options and positionals; `tokens` lists them in order. It
 * throws `SLUICE_OPTION` for an option that is not in `options`. `help` is the command that the
 * error refers to.
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
    throw new SluiceError('SLUICE_OPTION', `${problem}.${hint} Run ${help} for the options.`, {
      cause,
    })
  }
}

/** didYouMean returns a hint for an error message, such as ` Did you mean --rule?`, or ''. */
export function didYouMean(name: string, names: readonly string[], prefix = ''): string {
  const near = nearest(name, names)
  return near === undefined ? '' : ` Did you mean ${prefix}${near}?`
}

/** Joins `--top -1` to `--top=-1`, since `parseArgs` takes -1 for an option. */
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
