import type { HttpRequest } from './request.ts'

/** PathNeed says what the rule sets want of paths: a log without them is of no use if `required`. */
export type PathNeed = 'unwanted' | 'wanted' | 'required'

/** httpOf reads a path, an address or a request line, with what other fields say of it. */
export function httpOf(
  text: string,
  method: string | undefined,
  host: string | undefined,
): HttpRequest {
  if (text.includes(' ')) return { host, ...requestLine(text) }
  const [, ofAddress, path] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(text) ?? []
  if (path === undefined) return { target: text, method, host }
  return { target: path.startsWith('/') ? path : `/${path}`, method, host: host ?? ofAddress }
}

/** requestLine reads `GET /path HTTP/1.1`; a text that is none has an empty target. */
export function requestLine(text: string): Omit<HttpRequest, 'host'> {
  const [, method, target] = /^([^ ]+) ([^ ]+) HTTP\/\d[.\d]*$/.exec(text) ?? []
  return { method, target: target ?? '' }
}
