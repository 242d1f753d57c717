import type { FieldReader, Look } from './fields.ts'
import type { LineReader } from './request.ts'

/**
 * createJsonReader reads one JSON object per line. `req.ip` is the field of that name, or else the
 * field `ip` of the object `req`.
 */
export function createJsonReader(fields: FieldReader): LineReader {
  const paths = new Map<string, readonly string[]>()
  let object: object

  const look: Look = (name) => {
    if (Object.hasOwn(object, name)) return object[name as never]
    if (!name.includes('.')) return undefined
    let path = paths.get(name)
    if (!path) {
      path = name.split('.')
      paths.set(name, path)
    }
    return inside(object, path)
  }

  return (line) => {
    try {
      object = JSON.parse(line)
    } catch {
      return 'it is not JSON'
    }
    if (typeof object !== 'object' || object === null || Array.isArray(object)) {
      return 'it is not a JSON object'
    }
    return fields.read(look)
  }
}

function inside(object: object, path: readonly string[]): unknown {
  let value: unknown = object
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = value[name as never]
  }
  return value
}
