/** Path leads to a value: names of tables and indexes of lists. */
export type Path = readonly (string | number)[]

/** pathText writes a path as `routes[2].rules[0]`, and quotes a name that is not a plain word. */
export function pathText(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (!/^[\w$-]{1,64}$/.test(step)) text += `[${shown(step)}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}

/** shown renders a value for a message: short, on one line, without the password of an address. */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    // Anything before an @ may be a password, even in a malformed URL.
    const text = value.replace(/^.*@/s, '…@')
    return text.length > 64 ? `${JSON.stringify(text.slice(0, 64))}…` : JSON.stringify(text)
  }
  if (value === null) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'a table' : String(value)
}
