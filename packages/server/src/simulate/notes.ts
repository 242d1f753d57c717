import type { RuleSetReport } from './report.ts'
import { count, span } from './shown.ts'

/** notesOf says what is special about a rule set's figures, a sentence each. */
export function notesOf(set: RuleSetReport): string[] {
  const { refused, delayed, retries, evictions, longestDelayMs } = set
  return [
    ...(refused === 0 ? ['refuses nothing'] : []),
    ...(delayed > 0 ? [`${count(delayed)} are held, for ${span(longestDelayMs)} at most`] : []),
    ...(retries > 0 ? [`${count(retries)} of the requests are retries`] : []),
    ...(evictions > 0
      ? [`${count(evictions)} states had to go: raise --max-clients for exact answers`]
      : []),
  ]
}
