import type { z } from 'zod'
import type { Problem } from './config-error.ts'
import { knownNames } from './json-schema.ts'
import { type Path, shown } from './path-text.ts'
import type { Source } from './read-yaml.ts'

type Issue = z.core.$ZodIssue

/** explainIssues turns what the schema found into problems at their places. */
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
      // The kind of value says which branch was meant.
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
  // What is checked beyond kinds says itself what came.
  if (code === 'custom') return message
  const written = source.written(path)
  if (path.length > 0 && written === undefined) return `is missing; it ${message}`
  if (path[0] === 'admin' || written === undefined) return message
  if (written === null) return `is empty; it ${message}. Or remove the line`
  const isVariable = typeof written === 'string' && written.includes('${')
  return `${message}; got ${shown(written)}${isVariable ? ', and variables are always texts' : ''}`
}

/** nearest is the name that differs by the fewest letters, if it is likely meant; else undefined. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  if (name.length > 64) return undefined
  let best: string | undefined
  let fewest = Math.max(1, Math.min(3, Math.round(name.length / 3))) + 1
  for (const each of names) {
    if (Math.abs(each.length - name.length) >= fewest) continue
    const count = distance(name.toLowerCase(), each.toLowerCase())
    if (count < fewest) [best, fewest] = [each, count]
  }
  return best
}

/** How many letters to insert, remove or change. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, row[j] + 1, next[j - 1] + 1))
    }
    row = next
  }
  return row[b.length]
}
