import { SluiceError } from 'sluice'
import { ConfigError, problemLine } from '../config/config-error.ts'
import type { Io } from './command.ts'

/** reportProblems calls `read` and prints each problem of the configuration on its own line. */
export async function reportProblems<T>(
  file: string,
  io: Io,
  read: () => T | Promise<T>,
): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const problem of error.problems) io.note(problemLine(file, problem))
    const { length } = error.problems
    throw new SluiceError(
      'SLUICE_OPTION',
      `${file} has ${length === 1 ? 'a problem' : `${length} problems`}.`,
    )
  }
}
