/** The longest backoff, and the longest before the first retry. */
const MOST_MS = 30_000
const FIRST_MS = 500

/** isRefusal tells whether a server has refused a request temporarily. */
export function isRefusal({ status }: Response): boolean {
  return status === 429 || status === 503
}

/** isRepeatable tells whether a request can be retried: its body, if any, must not be a stream. */
export function isRepeatable(
  input: string | URL | Request,
  init: RequestInit | undefined,
): boolean {
  const body = init?.body ?? undefined
  if (body === undefined) return !(input instanceof Request) || input.body === null
  return !(body instanceof ReadableStream || Symbol.asyncIterator in Object(body))
}

/**
 * backoffMs returns the wait before a retry, counted from 0: exponential backoff with full jitter.
 */
export function backoffMs(retry: number): number {
  return Math.random() * Math.min(MOST_MS, FIRST_MS * 2 ** retry)
}
