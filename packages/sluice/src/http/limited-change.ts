import { reasonOf, SluiceError, shown } from '../core/errors.ts'
import { checkWhole } from '../core/options.ts'
import type { Field } from './fields.ts'
import type { Refusal } from './refusal.ts'

/** RefusalChange is what `onLimited` may change of a refusal. */
export interface RefusalChange {
  /** From 200 to 599, except those that have no body: 204, 205 and 304. */
  readonly status?: number
  /**
   * A string, sent as `text/plain`, or an object or array, sent as JSON. `fields` may set another
   * `content-type`.
   */
  readonly body?: string | object
  /** Header fields to add, or to replace those of the same name. */
  readonly fields?: readonly Field[]
}

const NAMES: readonly string[] = ['status', 'body', 'fields']
const BODILESS: readonly unknown[] = [204, 205, 304]

/**
 * changedBy applies the result of `onLimited` to a refusal. Throws `SLUICE_OPTION` if it is
 * invalid.
 */
export function changedBy(refusal: Refusal, change: unknown): Refusal {
  if (change === undefined || change === null) return refusal
  checkChange(change)
  const { status = refusal.status, body, fields = [] } = change
  checkWhole('rateLimit: status of onLimited', status, 200, 599)
  if (BODILESS.includes(status)) {
    throw wrong('status must be one of a response with a body, such as 429', shown(status))
  }
  checkFields(fields)
  const names = new Set(fields.map(([name]) => name.toLowerCase()))
  const isOwn = body !== undefined && body !== refusal.body
  if (isOwn) names.add('content-type')
  const kept: Field[] = refusal.fields.filter(([name]) => !names.has(name.toLowerCase()))
  if (isOwn && !fields.some(([name]) => name.toLowerCase() === 'content-type')) {
    const isText = typeof body === 'string'
    kept.push(['content-type', isText ? 'text/plain; charset=utf-8' : 'application/json'])
  }
  return { status, body: isOwn ? textOf(body) : refusal.body, fields: [...kept, ...fields] }
}

function checkChange(change: unknown): asserts change is RefusalChange {
  if (typeof change !== 'object' || shown(change) !== 'an object') {
    throw wrong(
      'the result must be an object with any of status, body and fields, or undefined',
      shown(change),
    )
  }
  // Inherited names count, too: a Response has some.
  for (const name in change) {
    if (NAMES.includes(name)) continue
    const hint = name === 'headers' ? " Headers are fields: [['name', 'value']]." : ''
    throw wrong('the result takes status, body and fields', shown(name), hint)
  }
}

function checkFields(fields: unknown): asserts fields is readonly Field[] {
  const isPair = (field: unknown) =>
    Array.isArray(field) && field.length === 2 && field.every((each) => typeof each === 'string')
  if (Array.isArray(fields) && fields.every(isPair)) return
  const bad = Array.isArray(fields) ? fields.findIndex((field) => !isPair(field)) : -1
  throw wrong(
    "fields must be a list of names with their texts, such as [['x-reason', 'busy']]",
    bad < 0 ? shown(fields) : `${shown(fields)} whose item ${bad + 1} is none`,
  )
}

function textOf(body: unknown): string {
  if (typeof body === 'string') return body
  const prototype = shown(body) === 'an object' ? Object.getPrototypeOf(body) : undefined
  if (!Array.isArray(body) && prototype !== Object.prototype && prototype !== null) {
    throw wrong('body must be a text, a plain object or an array', shown(body))
  }
  try {
    return JSON.stringify(body)
  } catch (error) {
    throw wrong('body must be something that JSON can write', reasonOf(error))
  }
}

function wrong(rule: string, got: string, hint = ''): SluiceError {
  return new SluiceError('SLUICE_OPTION', `rateLimit: onLimited: ${rule}, got ${got}.${hint}`)
}
