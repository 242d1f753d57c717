/** nearest returns the most similar name, or undefined if none is close enough to be meant. */
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

/** The edit distance: how many letters to insert, remove or change. */
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
