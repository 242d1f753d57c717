const TOKEN = 'sluice-token'

/** token is the visitor's token; the browser drops it with the tab. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? '',
  set: (value: string) => sessionStorage.setItem(TOKEN, value),
  forget: () => sessionStorage.removeItem(TOKEN),
}

/** ApiProblem is an error response of the API. */
export class ApiProblem extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/**
 * ask calls the API, with the token if there is one. It throws an ApiProblem for an error response,
 * and with status 503 if there is no response.
 */
export async function ask(
  path: string,
  { method = 'GET', body, signal }: { method?: string; body?: object; signal?: AbortSignal } = {},
): Promise<Response> {
  const given = token.get()
  const response = await fetch(path, {
    method,
    signal: signal ?? null,
    cache: 'no-store',
    headers: {
      ...(given === '' ? {} : { authorization: `Bearer ${given}` }),
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  }).catch(() => {
    throw new ApiProblem(503, 'The server is unreachable.')
  })
  if (response.ok) return response
  const problem = await response.json().catch(() => ({}))
  throw new ApiProblem(response.status, problem.detail ?? response.statusText)
}
