import { type Clock, steadyClock } from '../../core/clock.ts'
import type { TimeLimit } from '../../failure/time-limit.ts'
import { unlisted } from '../../rows/store-errors.ts'
import type { Engine, Found } from './engine.ts'
import { createEngineTime } from './engine-time.ts'
import type { RowNames } from './names.ts'
import type { RemoteRows, RowsRead } from './remote.ts'

/** createRowsEngine adapts the `RemoteRows` given to `remoteStore` to an `Engine`. */
export function createRowsEngine(rows: RemoteRows, clock: Clock): Engine {
  const callerUs = rows.time === 'caller' ? steadyClock(clock) : undefined

  async function read(asked: readonly string[]): Promise<Found> {
    const { texts, versions, nowUs }: RowsRead = await rows.read(asked)
    const atUs = Math.floor(callerUs?.() ?? nowUs ?? 0)
    if (texts.length !== asked.length) {
      throw new Error(`read() returned ${texts.length} texts for ${asked.length} names.`)
    }
    if (atUs > 0) return { nowUs: atUs, texts, versions }
    throw new Error("read() returned no nowUs. If the engine has no clock, set time: 'caller'.")
  }

  async function swap(changes: Parameters<Engine['swap']>[0]): Promise<boolean> {
    const isSwapped: unknown = await rows.swap(changes)
    if (typeof isSwapped === 'boolean') return isSwapped
    throw new Error('swap() returned no boolean.')
  }

  async function* list(
    { start }: RowNames,
    limited: TimeLimit['limited'],
  ): AsyncIterable<readonly string[]> {
    if (!rows.list) throw unlisted()
    const given = new Set<string>()
    const pages = rows.list(start)[Symbol.asyncIterator]()
    for (;;) {
      const page = await limited(pages.next())
      if (page.done) return
      const fresh = page.value.filter((name) => !given.has(name))
      for (const name of fresh) given.add(name)
      yield fresh
    }
  }

  /** Removes rows, and retries those that another node has written meanwhile. */
  async function remove(page: readonly string[], limited: TimeLimit['limited']): Promise<void> {
    for (let left = page; left.length > 0; ) {
      const { texts = [], versions, nowUs } = await limited(read(left))
      const lost: string[] = []
      for (const [i, name] of left.entries()) {
        const from = texts[i]
        if (from === null) continue
        const version = versions?.[i]
        const change = { name, from, version, to: null, expiresMs: 1, nowUs, untilUs: 0 }
        if (!(await limited(swap([change])))) lost.push(name)
      }
      left = lost
    }
  }

  return {
    time: createEngineTime(),
    decides: () => false,
    tellsExpiry: false,
    isRowwise: rows.atomic === 'row',
    hasSlots: false,
    prepare() {},
    slotOf: () => 0,
    partOf: () => 0,
    visit: ({ names }) => read(names),
    swap,
    async *keys(names, limited) {
      for await (const page of list(names, limited)) yield page.map(names.keyOf)
    },
    async clear(names, limited) {
      for await (const page of list(names, limited)) {
        for (let i = 0; i < page.length; i += 128) await remove(page.slice(i, i + 128), limited)
      }
    },
  }
}
