/** Later is a value, or a promise of it. */
export type Later<T> = T | Promise<T>

/** after calls `next` with a value, or with the result of a promise. */
export function after<T, U>(value: Later<T>, next: (value: T) => Later<U>): Later<U> {
  return isLater(value) ? Promise.resolve(value).then(next) : next(value)
}

/**
 * isLater tells whether a value is a promise or another thenable, which would be truthy as a value.
 */
export function isLater<T>(value: Later<T>): value is Promise<T> {
  if (typeof value !== 'object' || value === null) return false
  return typeof (value as { then?: unknown }).then === 'function'
}
