import { addressKey } from 'sluice'
import type { KeyPart, RouteSettings, Settings } from '../settings.ts'

/**
 * strayKeys returns the keys of `clients` and `overrides` that no gateway request can have, given
 * the `key` settings. They may still be right: callers of the API choose their keys freely.
 */
export function strayKeys({ clients, overrides, routes }: Settings): string[] {
  const limited = routes.filter(({ isOpen }) => !isOpen)
  const listed = new Set([...Object.keys(clients), ...Object.keys(overrides)])
  return [...listed].filter((key) => !limited.some((route) => canHave(route, key)))
}

/** How many stray keys a warning names; one mistake in `key` makes all of them strays. */
const MOST_NAMED = 5

/** strayNote warns of stray keys, as a problem and a hint; empty if there are none. */
export function strayNote(settings: Settings): string[] {
  const stray = strayKeys(settings)
  if (stray.length === 0) return []
  const named = stray.slice(0, MOST_NAMED).map((key) => JSON.stringify(key))
  const more = stray.length > MOST_NAMED ? ` and ${stray.length - MOST_NAMED} more` : ''
  return [
    `no request can have the key ${named.join(', ')}${more}, so it applies only to callers of the ` +
      'API that send it.',
    `Keys of requests look like: ${keyShapes(settings).join('; ')}. See docs/reference/config.md, Keys.`,
  ]
}

/** What keys look like, one text for each kind of `key`. */
function keyShapes({ routes }: Settings): string[] {
  const limited = routes.filter(({ isOpen }) => !isOpen)
  return [...new Set(limited.map(shapeOf))]
}

const HASHED = /^key:[\w-]{43}$/

function canHave({ key, name }: RouteSettings, text: string): boolean {
  if (key.length === 1) return fits(key[0], name, text)
  const parts = split(text)
  return parts
    ? parts.length === key.length && key.every((part, i) => fits(part, name, parts[i]))
    : HASHED.test(text)
}

function fits(part: KeyPart, route: string, text: string): boolean {
  if (part.from === 'route') return text === route
  if (isAddress(text)) return true
  if (part.from === 'address') return false
  // Long values are hashed as well.
  if (HASHED.test(text)) return true
  if (part.from === 'api-key') return false
  const prefix = 'name' in part ? `${part.name}:` : 'sub:'
  return text.startsWith(prefix) && text.length > prefix.length
}

function isAddress(text: string): boolean {
  return addressKey(text.replace(/\/64$/, '')) === text
}

/** Splits a combined key into its parts; each follows its length. */
function split(text: string): string[] | undefined {
  const parts: string[] = []
  for (let rest = text; rest !== ''; ) {
    const [head, length] = /^([1-9]\d{0,3}):/.exec(rest) ?? []
    if (!head || rest.length < head.length + Number(length)) return undefined
    parts.push(rest.slice(head.length, head.length + Number(length)))
    rest = rest.slice(head.length + Number(length))
  }
  return parts
}

const PLAIN = {
  address: '192.0.2.1 or 2001:db8:0:7:0:0:0:0/64',
  'api-key': 'key:HASH (sluice key --api-key - prints it)',
  jwt: 'sub:SUBJECT',
  route: 'the name of the route',
}

function shapeOf({ key }: RouteSettings): string {
  const shapes = key.map((part) =>
    part.from === 'header' ? `${part.name}:VALUE` : PLAIN[part.from],
  )
  if (shapes.length === 1) return shapes[0]
  return `combined, each part after its length (sluice key prints it): ${shapes.join(' + ')}`
}
