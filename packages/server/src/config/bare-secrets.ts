import type { Settings } from '../settings.ts'

/** Headers that carry credentials: a reader of the value can impersonate the client. */
const SECRET: ReadonlySet<string> = new Set([
  ...['authorization', 'proxy-authorization', 'cookie'],
  ...['x-api-key', 'api-key', 'x-auth-token', 'x-access-token'],
])

/**
 * secretNote warns of keys that expose credentials, as a problem and a hint; empty if none does.
 */
export function secretNote({ routes }: Settings): string[] {
  const parts = routes.filter(({ isOpen }) => !isOpen).flatMap(({ key }) => key)
  const names = parts.flatMap((part) => (part.from === 'header' ? [part.name] : []))
  const bare = [...new Set(names)].filter((name) => SECRET.has(name))
  if (bare.length === 0) return []
  const [first] = bare
  const instead = first.endsWith('authorization') ? `api-key:${first} or jwt` : `api-key:${first}`
  return [
    `the key ${bare.map((name) => `header:${name}`).join(', ')} exposes secrets of clients in logs, ` +
      'lists and the store.',
    `Use ${instead}, which keeps only a hash or the subject of a token. See docs/reference/config.md, Keys.`,
  ]
}
