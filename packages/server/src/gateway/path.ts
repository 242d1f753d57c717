/**
 * plainPath is the path against which routes are matched: decoded, in lower case and without
 * parameters of segments; a segment with parameters only, or an empty one (`//`), becomes `;`. The
 * query is ignored.
 *
 * Undefined for a path that servers parse differently, so that the route may differ from what the
 * upstream runs: one that begins with `//` (a host to `new URL` and to PHP) or is an absolute URL,
 * with dot segments, encoded slashes, backslashes, control characters, spaces, characters outside
 * ASCII or a fragment, or that cannot be decoded, or can be decoded twice.
 */
export function plainPath(url: string): string | undefined {
  if (!url.startsWith('/') || url.startsWith('//')) return undefined
  const raw = exactPath(url)
  if (/[^\x21-\x7e]|#/.test(raw)) return undefined
  let path = raw
  if (raw.includes('%')) {
    if (/%2f|%5c/i.test(raw)) return undefined
    try {
      path = decodeURIComponent(raw)
    } catch {
      return undefined
    }
    if (/%[0-9a-f]{2}/i.test(path)) return undefined
  }
  // A semicolon begins parameters of a segment, which some servers remove before routing.
  path = path.replace(/([^/]);[^/]*/g, '$1').replace(/\/;[^/]*/g, '/;')
  if (isUnclear(path)) return undefined
  return path.replace(/\/(?=\/)/g, '/;').toLowerCase()
}

/** exactPath is the path as sent, without the query. */
export function exactPath(url: string): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}

/**
 * readingsOf are the ways in which servers may read a path of `plainPath`: with or without empty
 * segments, and up to its end or up to an encoded `?` or `#`.
 */
export function readingsOf(path: string): readonly string[] {
  if (!/[;?#]/.test(path)) return [path]
  const end = path.search(/[?#]/)
  const read = end === -1 ? [path] : [path, path.slice(0, end)]
  return [...read, ...read.map((each) => each.replaceAll('/;', ''))]
}

function isUnclear(path: string): boolean {
  for (let i = 0; i < path.length; i += 1) {
    const code = path.charCodeAt(i)
    if (code < 32 || code === 127 || code === 92) return true
  }
  // After decoding the path, a server may cut it at a `?` or `#`.
  return /(^|\/)\.{1,2}([/?#]|$)/.test(path)
}
