import { exact } from './exact.ts'

/** twinsText is Lua that fills the table `twins`, by the names of algorithms. */
export function twinsText(twins: ReadonlyMap<string, string>): string {
  const each = Array.from(
    twins,
    ([name, text]) => `twins['${name}'] = (function()${text}\nend)()\n`,
  )
  return `${exact}local twins = {}\n${each.join('')}`
}
