/** equal throws, and shows both values, unless two plain values are deeply equal. */
export function equal(actual: unknown, expected: unknown, label: string): void {
  // Random streams compare a million decisions, so texts are made only for those that may differ.
  if (isSame(actual, expected)) return
  const [a, b] = [shape(actual), shape(expected)]
  if (a !== b) throw new Error(`${label}\n  expected ${b}\n  got      ${a}`)
}

/** fails throws unless `work` throws (or rejects with) an error that carries this code. */
export async function fails(work: () => unknown, code: string, label: string): Promise<void> {
  let got = 'nothing was thrown'
  try {
    await work()
  } catch (error) {
    got = String((error as { code?: unknown }).code ?? error)
  }
  equal(got, code, label)
}

/** Tells whether two values are certainly equal; false if only their texts can tell. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  const names = Object.keys(a)
  if (names.length === 0 || names.length !== Object.keys(b).length) return false
  const [left, right] = [a, b] as Record<string, unknown>[]
  for (const name of names) {
    if (!(name in right) || !isSame(left[name], right[name])) return false
  }
  return Array.isArray(a) === Array.isArray(b)
}

function shape(value: unknown): string {
  return JSON.stringify(value, (_, member) => {
    // JSON would turn these into null, which could hide a difference.
    if (typeof member === 'number' && !Number.isFinite(member)) return String(member)
    if (member === undefined) return 'undefined'
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member
    return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
