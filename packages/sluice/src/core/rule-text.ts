import type { Algorithm } from './algorithm.ts'
import { durationText } from './duration.ts'
import type { Params } from './params.ts'

/** USUAL is the default algorithm of rule texts. */
export const USUAL = 'token-bucket'

/**
 * writeRule formats a rule in canonical form: `'100/1m burst 20'`, `'5/1s align clock
 * fixed-window'`.
 */
export function writeRule(
  algorithm: Algorithm,
  limit: number,
  perUs: number,
  params: Params,
): string {
  const time = params.per ?? durationText(perUs)
  let text = algorithm.span === 'per' ? `${limit}/${time}` : `${limit} ${algorithm.span} ${time}`
  for (const [name, param] of Object.entries(algorithm.params)) {
    if (params[name] !== param.fallback(limit)) text += ` ${name} ${params[name]}`
  }
  return algorithm.name === USUAL ? text : `${text} ${algorithm.name}`
}
