import type { Rule } from '../../core/rule.ts'
import { labelOf, ownerOf } from '../../rows/codec.ts'
import { createLayout, type LaidRules } from '../../rows/layout.ts'
import { type OpenRow, type OwnLine, openRowFor } from '../../rows/open-row.ts'

/** RemoteRules is a rule set whose rows are texts in a remote engine. */
export interface RemoteRules extends LaidRules {
  /** One line per rule that keeps state. */
  readonly lines: readonly OwnLine[]
  /** The buffer into which a key's row is decoded. The next key overwrites it. */
  readonly row: OpenRow
}

function lineOf(rule: Rule, index: number, at: number): OwnLine {
  const label = labelOf(rule)
  return { rule, index, at, label, owner: ownerOf(label) }
}

/** remoteRules prepares rules for a remote engine. */
export function remoteRules(rules: readonly Rule[]): RemoteRules {
  const layout = createLayout()
  const laid = layout.use(rules, () => {})
  const lines = laid.rules.flatMap((rule, i): OwnLine[] =>
    laid.columns[i] < 0 ? [] : [lineOf(rule, i, laid.at[i])],
  )
  if (laid.penalty) lines.push(lineOf(laid.penalty, -1, laid.penaltyAt))
  return { ...laid, lines, row: openRowFor(lines, layout.stride) }
}

/** Node of a trie of rules: the set of the rules on its path, and its children by the next rule. */
interface Known {
  set?: RemoteRules
  readonly next: WeakMap<Rule, Known>
}

/**
 * createRemoteRules returns a function that gives the same set for the same rules: requests share a
 * trip only if they have the same set for a shared row.
 */
export function createRemoteRules(): (rules: readonly Rule[]) => RemoteRules {
  const none: Known = { next: new WeakMap() }
  return (rules) => {
    let known = none
    for (const rule of rules) {
      const next: Known = known.next.get(rule) ?? { next: new WeakMap() }
      known.next.set(rule, next)
      known = next
    }
    known.set ??= remoteRules(rules)
    return known.set
  }
}
