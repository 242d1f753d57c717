const TOKEN = 'sluice-token'

/** token is what the visitor has given; the browser forgets it with the tab. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? '',
  set: (value: string) => sessionStorage.setItem(TOKEN, value),
  forget: () => sessionStorage.removeItem(TOKEN),
}

/** ApiProblem is what the API says is wrong. */
export class ApiProblem extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/**
 * ask calls the API, with the token if there is one, and throws an ApiProblem for what is wrong; 503
 * also where nobody answers.
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
    throw new ApiProblem(503, 'The server cannot be reached now.')
  })
  if (response.ok) return response
  const told = await response.json().catch(() => ({}))
  throw new ApiProblem(response.status, told.detail ?? response.statusText)
}
