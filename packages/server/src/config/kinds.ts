import { z } from 'zod'

/** whole is a whole number in a range; messages name the `unit`, such as `'of bytes '`. */
export function whole(from: number, to: number, unit = '') {
  const must = `must be a whole number ${unit}from ${from} to ${to}`
  return z.number(must).int(must).min(from, must).max(to, must)
}

/** table is an object with no other fields than these; `what` is the end of "must be …". */
export function table<S extends z.ZodRawShape>(shape: S, what: string) {
  return z.strictObject(shape, `must be ${what}`)
}
