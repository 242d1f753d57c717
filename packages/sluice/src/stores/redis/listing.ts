import type { TimeLimit } from '../../failure/time-limit.ts'
import type { Connection } from './client.ts'
import { escapePattern, unescapeName } from './names.ts'

/** listKeys gives every key that has a state or a block, once, page by page. */
export async function* listKeys(
  connection: Connection,
  prefix: string,
  limited: TimeLimit['limited'],
): AsyncIterable<string[]> {
  const given = new Set<string>()
  for await (const names of namesOf(connection, prefix, limited)) {
    const keys = new Set(names.map((name) => keyIn(name, prefix)))
    const page = [...keys].filter((key) => !given.has(key))
    for (const key of page) given.add(key)
    yield page
  }
}

/** removeKeys removes every state and block. */
export async function removeKeys(
  connection: Connection,
  prefix: string,
  limited: TimeLimit['limited'],
): Promise<void> {
  for await (const names of namesOf(connection, prefix, limited)) {
    const slots = new Map<number, string[]>()
    for (const name of names) {
      const slot = connection.slotOf(keyIn(name, prefix))
      const together = slots.get(slot)
      if (together) together.push(name)
      else slots.set(slot, [name])
    }
    const removed = Array.from(slots.values(), (some) => connection.send(some[0], 'UNLINK', some))
    await limited(Promise.all(removed))
  }
}

/** All names with this prefix in Redis, about a thousand at a time. */
async function* namesOf(
  connection: Connection,
  prefix: string,
  limited: TimeLimit['limited'],
): AsyncIterable<string[]> {
  const pattern = `${escapePattern(prefix)}:{*`
  for (const send of await limited(connection.masters())) {
    let cursor = '0'
    do {
      const args = [cursor, 'MATCH', pattern, 'COUNT', '1000']
      const [next, names] = (await limited(send(prefix, 'SCAN', args))) as [unknown, string[]]
      cursor = String(next)
      if (names.length > 0) yield names
    } while (cursor !== '0')
  }
}

function keyIn(name: string, prefix: string): string {
  return unescapeName(name.slice(prefix.length + 2, -1))
}
