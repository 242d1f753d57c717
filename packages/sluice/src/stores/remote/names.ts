/**
 * RowNames are the names of one limiter's rows: `prefix/key`, or `prefix:limiter/key` for a limiter that
 * has a name. Rows of a field of the key are `prefix:limiter:field/value`. The key is all behind the first
 * slash, so that no two rows meet.
 */
export interface RowNames {
  /** What all of them begin with. */
  readonly start: string
  nameOf(key: string): string
  keyOf(name: string): string
}

/**
 * rowNames names the rows of a limiter, or of one field of its keys. `prefix` stands as it is, without
 * braces and slashes.
 */
export function rowNames(prefix: string, limiter: string, field?: string): RowNames {
  const part = (text: string) => `:${escaped(text).replace(/[:/]/g, percent)}`
  const own = limiter === 'default' && field === undefined ? '' : part(limiter)
  const start = `${prefix}${own}${field === undefined ? '' : part(field)}/`
  return {
    start,
    nameOf: (key) => start + escaped(key),
    keyOf: (name) => unescaped(name.slice(start.length)),
  }
}

/** Braces would be the hash tag of a Redis Cluster, and lone surrogates are all the same in UTF-8. */
function escaped(text: string): string {
  if (!/[%{}\ud800-\udfff]/.test(text)) return text
  return text.replace(
    /[%{}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
    percent,
  )
}

function percent(unit: string): string {
  const hex = unit.charCodeAt(0).toString(16)
  return hex.length > 2 ? `%u${hex}` : `%${hex}`
}

function unescaped(text: string): string {
  return text.replace(/%u([0-9a-f]{4})|%([0-9a-f]{2})/g, (_, wide, narrow) =>
    String.fromCharCode(Number.parseInt(wide ?? narrow, 16)),
  )
}
