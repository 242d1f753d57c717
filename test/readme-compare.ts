import { inspect, isDeepStrictEqual } from 'node:util'

const MORE = Symbol('and more')

/** more stands for `…`: spread at the end of a shown object or array, it leaves the rest open. */
export const more: Iterable<symbol> = Object.defineProperty(
  { [MORE]: true, [Symbol.iterator]: () => [MORE].values() },
  // Not enumerable, so that an object that it is spread into does not become iterable.
  Symbol.iterator,
  { enumerable: false },
)

/**
 * shows throws unless `actual` equals the shown value. `text` is that value as the document writes
 * it.
 */
export function shows(where: string, text: string, actual: unknown, shown: unknown): void {
  if (matches(actual, shown)) return
  throw new Error(`${where}: shows ${text}, but the value is ${inspect(actual, { depth: null })}`)
}

/** throwsCode throws unless `run` throws an error with that code. */
export function throwsCode(where: string, code: string, run: () => unknown): void {
  let outcome: string
  try {
    outcome = `the value is ${inspect(run())}`
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code === code) return
    outcome = `it threw ${inspect(error)}`
  }
  throw new Error(`${where}: shows throws ${code}, but ${outcome}`)
}

/** rejectsCode is throwsCode for an expression with `await`. */
export async function rejectsCode(
  where: string,
  code: string,
  run: () => Promise<unknown>,
): Promise<void> {
  const outcome = await run().then(
    (value) => () => value,
    (error) => () => {
      throw error
    },
  )
  throwsCode(where, code, outcome)
}

/** Tests deep equality; a shown literal that ends with `…` may lack members of the actual value. */
function matches(actual: unknown, shown: unknown): boolean {
  if (Array.isArray(actual) && Array.isArray(shown)) {
    const open = shown.at(-1) === MORE
    const members = open ? shown.slice(0, -1) : shown
    return (
      (open ? actual.length >= members.length : actual.length === members.length) &&
      members.every((member, i) => matches(actual[i], member))
    )
  }
  if (isObject(actual) && isPlain(shown)) {
    const names = Object.keys(shown)
    return (
      (MORE in shown || (isPlain(actual) && Object.keys(actual).length === names.length)) &&
      names.every((name) => name in actual && matches(actual[name], shown[name]))
    )
  }
  return isDeepStrictEqual(actual, shown)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return isObject(value) && Object.getPrototypeOf(value) === Object.prototype
}
