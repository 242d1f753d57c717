import { exact } from './exact.ts'

/** twinsText returns Lua that fills the table `twins`, by algorithm name. */
export function twinsText(twins: ReadonlyMap<string, string>): string {
  const each = Array.from(
    twins,
    ([name, text]) => `twins['${name}'] = (function()${text}\nend)()\n`,
  )
  return `${exact}local twins = {}\n${each.join('')}`
}
