/**
 * Names of rows in Redis: `prefix:{key}`, or `prefix:limiter:{key}`. Braces are escaped in all parts, so
 * that no two rows meet.
 */

/** escapeName makes any string safe between braces, and different strings different. */
export function escapeName(text: string): string {
  if (!/[%{}\ud800-\udfff]/.test(text)) return text
  // Redis gets UTF-8, in which all lone surrogates would be the same.
  return text.replace(
    /[%{}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
    (unit) =>
      unit < '\ud800'
        ? `%${unit.charCodeAt(0).toString(16)}`
        : `%u${unit.charCodeAt(0).toString(16)}`,
  )
}

/** unescapeName undoes `escapeName`. */
export function unescapeName(text: string): string {
  return text.replace(/%u([0-9a-f]{4})|%([0-9a-f]{2})/g, (_, wide, narrow) =>
    String.fromCharCode(Number.parseInt(wide ?? narrow, 16)),
  )
}

/** escapePattern makes a text that matches only itself in MATCH. */
export function escapePattern(text: string): string {
  return text.replace(/[\\*?[\]^]/g, '\\$&')
}
