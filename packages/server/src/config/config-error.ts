/** Problem is one mistake in a configuration, and where it is. */
export interface Problem {
  /** Lines and columns count from 1. */
  readonly line: number
  readonly column: number
  /** Such as `routes[2].rules[0]`; empty for the file as a whole. */
  readonly path: string
  /** What is wrong, and what to write instead. */
  readonly message: string
}

/** ConfigError lists everything that is wrong with a configuration, in the order of its lines. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly file: string
  readonly problems: readonly Problem[]

  constructor(file: string, problems: readonly Problem[]) {
    const sorted = problems.toSorted((a, b) => a.line - b.line || a.column - b.column)
    super(sorted.map((problem) => problemLine(file, problem)).join('\n'))
    this.file = file
    this.problems = sorted
  }
}

/** problemLine formats a problem as `FILE:LINE:COL  path: message`. */
export function problemLine(file: string, { line, column, path, message }: Problem): string {
  return `${file}:${line}:${column}  ${path === '' ? '' : `${path}: `}${message}`
}
