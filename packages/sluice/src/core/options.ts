import { type ErrorCode, SluiceError, shown } from './errors.ts'

/**
 * checkOptions throws if `options` is not a plain object or has a name outside `known`, so that a
 * misspelt option is an error instead of a silent default.
 */
export function checkOptions(
  where: string,
  options: unknown,
  known: readonly string[],
): asserts options is object {
  if (typeof options !== 'object' || options === null || shown(options) !== 'an object') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `${where}: options must be an object, got ${shown(options)}.`,
    )
  }
  // Check inherited names, too: reads would find them.
  for (const name in options) {
    if (known.includes(name)) continue
    throw new SluiceError(
      'SLUICE_OPTION',
      `${where}: there is no option ${shown(name)}. It takes ${known.join(', ')}.`,
    )
  }
}

/** checkFunction throws unless `value` is a function or undefined. `of` describes its parameter. */
export function checkFunction(where: string, value: unknown, of = ''): void {
  if (value === undefined || typeof value === 'function') return
  const what = of === '' ? 'a function' : `a function ${of}`
  throw new SluiceError('SLUICE_OPTION', `${where} must be ${what}, got ${shown(value)}.`)
}

/** checkFlag throws unless `value` is true, false or undefined. */
export function checkFlag(where: string, value: unknown): void {
  if (value === undefined || typeof value === 'boolean') return
  throw new SluiceError('SLUICE_OPTION', `${where} must be true or false, got ${shown(value)}.`)
}

/**
 * checkWhole returns `value` if it is a whole number from `least` to `most`, and throws otherwise.
 */
export function checkWhole(
  where: string,
  value: unknown,
  least: number,
  most: number,
  code: ErrorCode = 'SLUICE_OPTION',
  remedy = '',
): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) {
    return value as number
  }
  const range = `from ${least.toLocaleString('en')} to ${most.toLocaleString('en')}`
  const hint = typeof value === 'string' ? ' Pass a number, not a string.' : ''
  throw new SluiceError(
    code,
    `${where} must be a whole number ${range}, got ${shown(value)}.${hint}${remedy && ` ${remedy}`}`,
  )
}
