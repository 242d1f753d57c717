import type { HttpRequest } from './request.ts'

/** PathNeed says whether the rule sets need paths; a log without them is refused if `required`. */
export type PathNeed = 'unwanted' | 'wanted' | 'required'

/** httpOf reads a path, a URL or a request line, with method and host from other fields. */
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

/** requestLine parses `GET /path HTTP/1.1`; the target of any other text is empty. */
export function requestLine(text: string): Omit<HttpRequest, 'host'> {
  const [, method, target] = /^([^ ]+) ([^ ]+) HTTP\/\d[.\d]*$/.exec(text) ?? []
  return { method, target: target ?? '' }
}
