import type { Rule } from '../../core/rule.ts'
import type { OwnLine } from '../../rows/open-row.ts'
import type { RemoteRules } from '../remote/remote-rules.ts'

/** isTwinned tells whether all rules have twins. If not, the script only reads the rows. */
export function isTwinned({ lines }: RemoteRules): boolean {
  return lines.every(({ rule }) => rule.algorithm.lua !== '')
}

/** A rule set as JSON for the script, with window edges that are valid during an interval. */
interface Told {
  readonly json: string
  readonly fromUs: number
  readonly toUs: number
}

const known = new WeakMap<RemoteRules, Told>()

/** jsonOf encodes a rule set for the script, with the window edges around `nowUs`. */
export function jsonOf(set: RemoteRules, nowUs: number): string {
  let told = known.get(set)
  if (!told || nowUs < told.fromUs || nowUs >= told.toUs) {
    told = toldOf(set, nowUs)
    known.set(set, told)
  }
  return told.json
}

/** Encodes a rule set. The result is valid until `nowUs` crosses an edge. */
function toldOf(set: RemoteRules, nowUs: number): Told {
  const edges = set.lines.map(({ rule }) => edgesOf(rule, nowUs))
  const all = edges.flatMap((some) => some ?? [])
  const rules = set.lines.map((line, i) => ruleFor(line, edges[i]))
  return {
    json: JSON.stringify({ rules, ...formsOf(set) }),
    fromUs: Math.max(...all.filter((edge) => edge <= nowUs)),
    toUs: Math.min(...all.filter((edge) => edge > nowUs)),
  }
}

function edgesOf(rule: Rule, nowUs: number): readonly number[] | undefined {
  return rule.algorithm.windows?.(rule).edgesAround?.(nowUs)
}

/** Encodes a rule. In Lua `per` is in microseconds, so a calendar period is named `period`. */
function ruleFor({ rule, label }: OwnLine, edges: readonly number[] | undefined): object {
  const { per: period, ...params } = rule.params
  return {
    ...(period === undefined ? params : { period, ...params }),
    algorithm: rule.algorithm.name,
    label,
    cells: rule.algorithm.grows ? 0 : rule.algorithm.cells(rule),
    limit: rule.limit,
    per: rule.perUs,
    capacity: rule.capacity,
    gap: rule.gapUs,
    rest: rule.gapRest,
    parts: rule.gapParts,
    full: rule.fullUs,
    full_rest: rule.fullRest,
    edges,
  }
}

/** The most cells per rule, and rules per row, that the script reads with a pattern. */
const MOST_CELLS = 3
const MOST_RULES = 10

/** Returns a Lua pattern to read rows that only these rules wrote, and a format to write them. */
function formsOf({ lines, row }: RemoteRules): object {
  const fits = lines.every(({ rule }) => rule.algorithm.cells(rule) <= MOST_CELLS)
  if (!row.pattern || !fits || lines.length > MOST_RULES) return {}
  const each = lines.map(({ rule, label }) => {
    const count = rule.algorithm.cells(rule)
    const cells = (cell: string) => Array(count).fill(cell).join(' ')
    return {
      pattern: `${cells('([%da-f]+)')}:${label.replace(/[^\w\t ]/g, '%$&')}`,
      format: `${cells('%x')}:${label.replaceAll('%', '%%')}`,
    }
  })
  return {
    pattern: `^${each.map(({ pattern }) => pattern).join('\n')}$`,
    format: each.map(({ format }) => format).join('\n'),
  }
}
