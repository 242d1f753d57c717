/** OTHER is the label of everything beyond a cap. */
export const OTHER = 'other'

/**
 * createLabelCap gives a function that is true for the first `most` combinations of label values
 * it is asked about, however often, and false for all others. The number of series stays bounded
 * even if somebody finds a way to invent label values.
 */
export function createLabelCap(most: number): (a: string, b: string, c: string) => boolean {
  const seen = new Set<string>()
  return (a, b, c) => {
    const combination = `${a}\0${b}\0${c}`
    if (seen.has(combination)) return true
    if (seen.size >= most) return false
    seen.add(combination)
    return true
  }
}
