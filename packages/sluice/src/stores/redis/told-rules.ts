import type { Rule } from '../../core/rule.ts'
import type { OwnLine } from '../../rows/open-row.ts'
import type { RemoteRules } from '../remote/remote-rules.ts'

/** isTwinned tells whether the script can decide by these rules; by others it only reads. */
export function isTwinned({ lines }: RemoteRules): boolean {
  return lines.every(({ rule }) => rule.algorithm.lua !== '')
}

/** A set of rules as the script takes it, with the edges around an instant of this interval. */
interface Told {
  readonly json: string
  readonly fromUs: number
  readonly toUs: number
}

const known = new WeakMap<RemoteRules, Told>()

/** jsonOf is a set of rules for about the instant `nowUs`, as the script takes it. */
export function jsonOf(set: RemoteRules, nowUs: number): string {
  let told = known.get(set)
  if (!told || nowUs < told.fromUs || nowUs >= told.toUs) {
    told = toldOf(set, nowUs)
    known.set(set, told)
  }
  return told.json
}

/** Good until one of the edges is crossed, so that the whole periods around it are always there. */
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

/** A rule as Lua gets it: `per` is microseconds there, so the word is `period`. */
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

/** The most cells of a rule, and rules, of a row that the script reads by a pattern. */
const MOST_CELLS = 3
const MOST_RULES = 10

/** What `openRow` calls a plain row, as a pattern to read it by and a format to write it by. */
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
