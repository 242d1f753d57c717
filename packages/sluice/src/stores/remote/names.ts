/**
 * RowNames builds the names of one limiter's rows: `prefix/key`, or `prefix:limiter/key` for a
 * limiter with a name. Rows of a field of the key are `prefix:limiter:field/value`. The key is
 * everything after the first slash, so that no two rows share a name.
 */
export interface RowNames {
  /** The common start of all names. */
  readonly start: string
  nameOf(key: string): string
  keyOf(name: string): string
}

/**
 * rowNames creates the names for a limiter, or for one field of its keys. `prefix` is not escaped
 * and must not contain braces or slashes.
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

/** Escapes braces, which are hash tags in Redis Cluster, and lone surrogates, which UTF-8 merges. */
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
