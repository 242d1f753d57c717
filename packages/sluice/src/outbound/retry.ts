/** The longest backoff, and that before the first retry. */
const MOST_MS = 30_000
const FIRST_MS = 500

/** isRefusal says whether a server has refused a request for now. */
export function isRefusal({ status }: Response): boolean {
  return status === 429 || status === 503
}

/** isRepeatable says whether a request can be sent again: its body, if it has one, is no stream. */
export function isRepeatable(
  input: string | URL | Request,
  init: RequestInit | undefined,
): boolean {
  const body = init?.body ?? undefined
  if (body === undefined) return !(input instanceof Request) || input.body === null
  return !(body instanceof ReadableStream || Symbol.asyncIterator in Object(body))
}

/** backoffMs is how long to wait before a retry, counted from 0: full jitter on an exponential time. */
export function backoffMs(retry: number): number {
  return Math.random() * Math.min(MOST_MS, FIRST_MS * 2 ** retry)
}
