import type { Assignments } from '../limits.ts'

/** Kept are all assigned tiers and rules, by the keys of clients. */
export interface Kept {
  readonly tiers: ReadonlyMap<string, string>
  /** As texts for `parseRule`. */
  readonly rules: ReadonlyMap<string, readonly string[]>
}

/** Change is a new assignment of a client; the value undefined removes it. */
export type Change =
  | { readonly key: string; readonly kind: 'tier'; readonly value: string | undefined }
  | { readonly key: string; readonly kind: 'rules'; readonly value: readonly string[] | undefined }

/** OpenAssignments can also be replaced, when another server has changed them. */
export interface OpenAssignments extends Assignments {
  /** Takes over the assignments that another server has stored. */
  replace(kept: Kept): void
}

/**
 * createAssignments holds assignments, at first `kept`. Changes are made one after the other:
 * `write` stores the change, and gets all assignments that result; then it applies. `onChange` gets
 * each key whose assignments have changed.
 */
export function createAssignments(
  kept: Kept,
  write: (change: Change, all: Kept) => Promise<void>,
  onChange: (key: string) => void,
): OpenAssignments {
  const tiers = new Map(kept.tiers)
  const rules = new Map(kept.rules)
  let last = Promise.resolve()

  function make(change: Change): Promise<void> {
    const next = last.then(async () => {
      const all = { tiers: new Map(tiers), rules: new Map(rules) }
      put(all, change)
      await write(change, all)
      put({ tiers, rules }, change)
      onChange(change.key)
    })
    last = next.catch(() => {})
    return next
  }

  return {
    tiers,
    rules,
    setTier: (key, value) => make({ key, kind: 'tier', value }),
    setRules: (key, value) => make({ key, kind: 'rules', value }),
    replace(other) {
      const changed = new Set([...replaced(tiers, other.tiers), ...replaced(rules, other.rules)])
      for (const key of changed) onChange(key)
    },
  }
}

function put(
  { tiers, rules }: { tiers: Map<string, string>; rules: Map<string, readonly string[]> },
  { key, kind, value }: Change,
): void {
  if (kind === 'tier') set(tiers, key, value)
  else set(rules, key, value)
}

function set<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  if (value === undefined) map.delete(key)
  else map.set(key, value)
}

/** Makes `map` equal to `other`, and returns the keys that differed. */
function replaced<T>(map: Map<string, T>, other: ReadonlyMap<string, T>): string[] {
  const changed = [...new Set([...map.keys(), ...other.keys()])].filter(
    (key) => JSON.stringify(map.get(key)) !== JSON.stringify(other.get(key)),
  )
  for (const key of changed) set(map, key, other.get(key))
  return changed
}
