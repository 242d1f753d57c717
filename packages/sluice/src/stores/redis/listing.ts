import type { TimeLimit } from '../../failure/time-limit.ts'
import type { RowNames } from '../remote/names.ts'
import type { Connection } from './client.ts'
import { slotOfName } from './slots.ts'

/** listKeys yields the key of every row once, page by page. */
export async function* listKeys(
  connection: Connection,
  names: RowNames,
  limited: TimeLimit['limited'],
): AsyncIterable<string[]> {
  const given = new Set<string>()
  for await (const found of scan(connection, names, limited)) {
    const page = found.filter((name) => !given.has(name) && given.add(name))
    yield page.map(names.keyOf)
  }
}

/** removeRows deletes every row. */
export async function removeRows(
  connection: Connection,
  names: RowNames,
  limited: TimeLimit['limited'],
): Promise<void> {
  for await (const found of scan(connection, names, limited)) {
    const slots = new Map<number, string[]>()
    for (const name of found) {
      const slot = connection.hasSlots ? slotOfName(name) : 0
      const together = slots.get(slot)
      if (together) together.push(name)
      else slots.set(slot, [name])
    }
    const removed = Array.from(slots.values(), (some) => connection.send(some[0], 'UNLINK', some))
    await limited(Promise.all(removed))
  }
}

/** Yields the names of a limiter's rows, about a thousand at a time. Names may repeat. */
async function* scan(
  connection: Connection,
  { start }: RowNames,
  limited: TimeLimit['limited'],
): AsyncIterable<string[]> {
  const pattern = `${start.replace(/[\\*?[\]^]/g, '\\$&')}*`
  for (const send of await limited(connection.masters())) {
    let cursor = '0'
    do {
      const args = [cursor, 'MATCH', pattern, 'COUNT', '1000']
      const [next, names] = (await limited(send(start, 'SCAN', args))) as [unknown, string[]]
      cursor = String(next)
      if (names.length > 0) yield names
    } while (cursor !== '0')
  }
}
