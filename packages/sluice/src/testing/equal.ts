/** equal throws, with both sides shown, unless two plain values are deeply the same. */
export function equal(actual: unknown, expected: unknown, label: string): void {
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

function shape(value: unknown): string {
  return JSON.stringify(value, (_, member) => {
    // JSON would turn these into null and hide a difference.
    if (typeof member === 'number' && !Number.isFinite(member)) return String(member)
    if (member === undefined) return 'undefined'
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member
    return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
