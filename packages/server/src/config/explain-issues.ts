import type { z } from 'zod'
import type { Problem } from './config-error.ts'
import { knownNames } from './json-schema.ts'
import { nearest } from './nearest.ts'
import { type Path, shown } from './path-text.ts'
import type { Source } from './read-yaml.ts'

type Issue = z.core.$ZodIssue

/** explainIssues turns issues of the schema into problems with lines and columns. */
export function explainIssues(
  issues: readonly Issue[],
  source: Source,
  around: Path = [],
): Problem[] {
  return issues.flatMap((issue) => {
    const path = [...around, ...(issue.path as (string | number)[])]
    if (issue.code === 'unrecognized_keys') {
      const known = knownNames(path)
      return issue.keys.map((name) => {
        const near = nearest(name, known)
        const hint = near ? `Did you mean ${near}?` : `Known here: ${known.join(', ')}.`
        return source.problemAtName([...path, name], `${shown(name)} is unknown. ${hint}`)
      })
    }
    if (issue.code === 'invalid_key') {
      return [source.problemAtName(path, issue.issues[0]?.message ?? issue.message)]
    }
    if (issue.code === 'invalid_union') {
      // The type of the value shows which branch was meant.
      const meant = issue.errors.filter((branch) => !branch.some(isOtherKind))
      if (meant.length === 1) return explainIssues(meant[0], source, path)
    }
    return [source.problem(path, messageOf(issue, path, source))]
  })
}

function isOtherKind({ code, path }: Issue): boolean {
  return path.length === 0 && (code === 'invalid_type' || code === 'invalid_value')
}

function messageOf({ code, message }: Issue, path: Path, source: Source): string {
  // Custom checks say themselves what they got.
  if (code === 'custom') return message
  const written = source.written(path)
  if (path.length > 0 && written === undefined) return `is missing; it ${message}`
  if (path[0] === 'admin' || written === undefined) return message
  if (written === null) return `is empty; it ${message}. Or remove the line`
  const isVariable = typeof written === 'string' && written.includes('${')
  return `${message}; got ${shown(written)}${isVariable ? ', and variables are always strings' : ''}`
}
