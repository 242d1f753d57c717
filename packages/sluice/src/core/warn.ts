/** The part of Node's `process` that is used. */
interface WarningProcess {
  emitWarning?(message: string, options: { readonly type: string; readonly code: string }): void
}

/** warningCodes lists every code a warning may carry, with its meaning in one line. */
export const warningCodes = {
  SLUICE_PER_PROCESS: 'one of several processes keeps its limits in its own memory',
  SLUICE_TRUST_PROXY: 'a framework trusts proxies, but trustProxy of rateLimit is not set',
} as const

const told = new Set<string>()

/**
 * warnOnce warns about a setting that is probably a mistake, once per text and process: by
 * `process.emitWarning` if it exists, else by `console.warn`.
 */
export function warnOnce(code: keyof typeof warningCodes, message: string): void {
  if (told.has(message)) return
  told.add(message)
  const { process } = globalThis as { process?: WarningProcess }
  if (process?.emitWarning) process.emitWarning(message, { type: 'SluiceWarning', code })
  else console.warn(`${code}: ${message}`)
}
