import { exact } from './exact.ts'
import { fixedWindow } from './fixed-window.ts'
import { freshTime, leakyBucket } from './fresh-time.ts'
import { slidingWindowCounter } from './sliding-window-counter.ts'
import { slidingWindowLog } from './sliding-window-log.ts'

/**
 * builtIn is the Lua text of each algorithm: the body of a function that returns a table `t` with
 * the functions `wait`, `spend`, `fresh` and, where something can be given back, `refund`. They do
 * as `waitUs`, `spend`, `freshAtUs` and `refund` of `Algorithm` do, with the cells of the state
 * from `s[1]` on, zeros where there are none, and the figures of the rule in `r`. `t.grows`: the
 * state is a list, empty at first.
 */
const builtIn: Readonly<Record<string, string>> = {
  'token-bucket': freshTime,
  gcra: freshTime,
  'leaky-bucket': leakyBucket,
  'fixed-window': fixedWindow,
  'sliding-window-counter': slidingWindowCounter,
  'sliding-window-log': slidingWindowLog,
}

/** twinOf is the twin of an algorithm that has one: its own, or the one that is built in. */
export function twinOf({ name, lua }: { readonly name: string; readonly lua: string }): string {
  return lua || (Object.hasOwn(builtIn, name) ? builtIn[name] : '')
}

/** twinsText is Lua that fills the table `twins`, by the names of algorithms. */
export function twinsText(twins: ReadonlyMap<string, string>): string {
  const each = Array.from(
    twins,
    ([name, text]) => `twins['${name}'] = (function()${text}\nend)()\n`,
  )
  return `${exact}local twins = {}\n${each.join('')}`
}

/** isInstant tells whether an algorithm's state is one instant of freshness, by the twin built in. */
export function isInstant(algorithm: { readonly name: string; readonly lua: string }): boolean {
  return [freshTime, leakyBucket].includes(twinOf(algorithm))
}

/** The algorithms whose units can be taken ahead of time, and whether their windows have an edge. */
export const leasable: Readonly<Record<string, { readonly edge: boolean }>> = {
  'token-bucket': { edge: false },
  gcra: { edge: false },
  'fixed-window': { edge: true },
}
