import { SluiceError } from 'sluice'
import type { z } from 'zod'

/** readBody checks the body of a request; its error lists every problem, and an example to send. */
export function readBody<T extends z.ZodType>(
  schema: T,
  body: unknown,
  example: object,
): z.infer<T> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  const problems = result.error.issues.map((issue) => inWords(issue, body))
  throw new SluiceError(
    'SLUICE_OPTION',
    `invalid body: ${problems.join('; ')}. Send ${JSON.stringify(example)}.`,
  )
}

function inWords(issue: z.core.$ZodIssue, body: unknown): string {
  const { code, path, message } = issue
  const what = path.length > 0 ? path.join('.') : 'it'
  if (code === 'unrecognized_keys') return `${issue.keys.join(', ')} is unknown`
  if (isMissing(path, body)) return `${what} is missing`
  if (code === 'invalid_type') return `${what} must be of type ${issue.expected}`
  if (code !== 'invalid_union') return `${what}: ${message}`
  const types = issue.errors.flat().map((each) => ('expected' in each ? each.expected : ''))
  return `${what} must be of type ${types.filter((type) => type !== '').join(' or ')}`
}

function isMissing(path: readonly PropertyKey[], body: unknown): boolean {
  let at = body
  for (const name of path) at = (at as Record<PropertyKey, unknown> | undefined)?.[name]
  return at === undefined
}
