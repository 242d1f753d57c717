/**
 * plainPath is the path of a request as routes are matched against it: decoded, in lower case, with
 * single slashes and without parameters of segments; `;` is a segment of nothing else. Undefined for a path that upstreams may take
 * for another one: with dot segments, encoded slashes, backslashes, control characters or a
 * fragment, or that cannot be decoded. The query is not looked at.
 */
export function plainPath(url: string): string | undefined {
  if (!url.startsWith('/')) return undefined
  const end = url.indexOf('?')
  const raw = end === -1 ? url : url.slice(0, end)
  // Bytes outside ASCII belong encoded; raw ones are read one way here and another way there. So
  // are fragments, which nobody sends.
  if (/[^\x21-\x7e]|#/.test(raw)) return undefined
  let path = raw
  if (raw.includes('%')) {
    if (/%2f|%5c/i.test(raw)) return undefined
    try {
      path = decodeURIComponent(raw)
    } catch {
      return undefined
    }
    // Decoded twice by somebody it would be another path.
    if (/%[0-9a-f]{2}/i.test(path)) return undefined
  }
  // A semicolon begins parameters of a segment, which some servers cut off before they look.
  path = path.replace(/([^/]);[^/]*/g, '$1').replace(/\/;[^/]*/g, '/;')
  if (isUnclear(path)) return undefined
  return path.replace(/\/{2,}/g, '/').toLowerCase()
}

function isUnclear(path: string): boolean {
  for (let i = 0; i < path.length; i += 1) {
    const code = path.charCodeAt(i)
    if (code < 32 || code === 127 || code === 92) return true
  }
  return /(^|\/)\.{1,2}(\/|$)/.test(path)
}
