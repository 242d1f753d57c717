import type { Assignments } from '../limits.ts'

/** Kept are the tiers and rules of clients, by their keys. */
export interface Kept {
  readonly tiers: ReadonlyMap<string, string>
  /** As texts for `parseRule`. */
  readonly rules: ReadonlyMap<string, readonly string[]>
}

/** Change is what is new about a client; undefined takes it back. */
export type Change =
  | { readonly key: string; readonly kind: 'tier'; readonly value: string | undefined }
  | { readonly key: string; readonly kind: 'rules'; readonly value: readonly string[] | undefined }

/** OpenAssignments can also be replaced, when somebody else has changed them. */
export interface OpenAssignments extends Assignments {
  /** Takes over what somebody else has kept. */
  replace(kept: Kept): void
}

/**
 * createAssignments holds what is `kept`. A change is written by `write` first, which gets all that
 * there is to be after it, one after the other; then it holds. `onChange` is told of every key that
 * has something new.
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

/** Makes `map` the same as `other`, and gives the keys that were not. */
function replaced<T>(map: Map<string, T>, other: ReadonlyMap<string, T>): string[] {
  const changed = [...new Set([...map.keys(), ...other.keys()])].filter(
    (key) => JSON.stringify(map.get(key)) !== JSON.stringify(other.get(key)),
  )
  for (const key of changed) set(map, key, other.get(key))
  return changed
}
