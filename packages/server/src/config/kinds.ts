import { z } from 'zod'

/** whole is a whole number in a range; `unit` is told in messages, such as `'of bytes '`. */
export function whole(from: number, to: number, unit = '') {
  const must = `must be a whole number ${unit}from ${from} to ${to}`
  return z.number(must).int(must).min(from, must).max(to, must)
}

/** table is a table without other names than these; `what` is the end of "must be …". */
export function table<S extends z.ZodRawShape>(shape: S, what: string) {
  return z.strictObject(shape, `must be ${what}`)
}
