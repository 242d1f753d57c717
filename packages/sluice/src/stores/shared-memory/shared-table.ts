import type { Algorithm } from '../../core/algorithm.ts'
import { createLayout, type LaidRules } from '../../rows/layout.ts'
import type { RowCare } from '../../rows/rows.ts'
import { unfit, unlistable } from '../../rows/store-errors.ts'
import { createTable } from '../../rows/table.ts'
import type { Table } from '../store.ts'
import { createBucket } from './buckets.ts'
import { createEviction } from './eviction.ts'
import { createOverflow } from './overflow.ts'
import { BLOCK_TAG, BLOCKS, EVICTIONS, FLOORED, type Region, ROWS, TAG_MASK } from './region.ts'
import { createSharedFloors } from './shared-floors.ts'
import { createSharedRows } from './shared-rows.ts'
import { createSharedTags } from './shared-tags.ts'
import { cellsAt, countBlocks, countLive, eachLive, tagAt } from './slots.ts'

/** SharedPlace is the shared memory of one table. */
export interface SharedPlace {
  readonly region: Region
  readonly words: Int32Array
  readonly cells: Float64Array
  readonly secret: Int32Array
}

/**
 * createSharedTable creates a table that several threads use. An inner table decides on private
 * copies of a key's row. Every verb is repeated until its changes are committed, which succeeds at
 * the first try unless another thread has changed the same bucket. Tests get a call of `locked` at
 * every lock.
 */
export function createSharedTable(
  { region, words, cells, secret }: SharedPlace,
  algorithms: readonly Algorithm[],
  readUs: () => number,
  locked?: () => void,
): Table<LaidRules> {
  const view = () => createBucket(region, words, locked)
  const [home, other, floor, far] = [view(), view(), view(), view()]
  const book = createSharedTags(region, words, cells, algorithms)
  const layout = createLayout(book, { columns: region.columns, unfit })
  const overflow = createOverflow(region, words, cells, far)
  const floors = createSharedFloors(region, words, cells, floor, overflow, layout, book)
  const eviction = createEviction(region, words, cells, other, floors)
  const rows = createSharedRows(region, words, cells, secret, home, floors, eviction)
  const makeRows = (care: RowCare) => {
    eviction.care = care
    return rows
  }
  const inner = createTable(makeRows, readUs, { layout, blocks: rows.blocks, floors })

  function repeated<T>(key: string, nowUs: number, verb: () => T): T {
    rows.hash(key)
    for (;;) {
      rows.read()
      try {
        const result = verb()
        if (rows.commit(nowUs)) return result
      } catch (error) {
        throwUnlessStale(error)
      }
    }
  }

  /** Ignores errors of algorithms on inconsistent rows, which were rewritten while they were read. */
  function throwUnlessStale(error: unknown): void {
    home.unlock()
    if (home.isUnchanged()) throw error
  }

  /** Sums a count over all buckets of rows, each counted consistently. */
  function sum(count: () => number): number {
    let all = 0
    for (let index = 0; index < region.homes; index += 1) {
      let some = 0
      do {
        other.read(index)
        some = count()
      } while (!other.isUnchanged())
      all += some
    }
    return all
  }

  /** Counts the keys of the bucket in `other` that are blocked or not fresh. */
  function inUse(nowUs: number): number {
    const keys = new Set<string>()
    eachLive(other.live, (slot) => {
      const [at, from] = [other.slotAt(slot), cellsAt(other, slot)]
      const tag = tagAt(words, other, slot)
      const untilUs = tag === BLOCK_TAG ? cells[from] : eviction.care.freshAtUs(cells, from, tag)
      if (untilUs > nowUs) keys.add(`${words[at]} ${words[at + 1] & ~TAG_MASK}`)
    })
    return keys.size
  }

  function empty(index: number): void {
    for (;;) {
      other.read(index)
      const all = countLive(other.live)
      if (all === 0) return
      const blocked = index < region.homes ? countBlocks(words, other, other.live) : 0
      if (!other.change(() => other.commit(0, 0))) continue
      if (index >= region.homes) return
      Atomics.sub(words, ROWS, all - blocked)
      Atomics.sub(words, BLOCKS, blocked)
      return
    }
  }

  return {
    isShared: true,
    nowUs: readUs,
    use: inner.use,
    allow(set, key, cost, atUs) {
      rows.hash(key)
      const nowUs = atUs === undefined ? readUs() : atUs
      for (;;) {
        rows.read()
        try {
          const passes = inner.allow(set, key, cost, nowUs)
          if (rows.commit(nowUs)) return passes
        } catch (error) {
          throwUnlessStale(error)
        }
      }
    },
    decide(set, key, cost, spend, atUs) {
      rows.hash(key)
      const nowUs = atUs === undefined ? readUs() : atUs
      for (;;) {
        rows.read()
        try {
          const decision = inner.decide(set, key, cost, spend, nowUs)
          if (rows.commit(nowUs)) return decision
        } catch (error) {
          throwUnlessStale(error)
        }
      }
    },
    punish: (set, key, cost, nowUs) =>
      repeated(key, nowUs, () => inner.punish(set, key, cost, nowUs)),
    charge: (set, key, cost, nowUs) =>
      repeated(key, nowUs, () => inner.charge(set, key, cost, nowUs)),
    refund: (set, key, cost, nowUs, spentUs) =>
      repeated(key, nowUs, () => inner.refund(set, key, cost, nowUs, spentUs)),
    finish: (set, key, held, change, nowUs) =>
      repeated(key, nowUs, () => inner.finish(set, key, held, change, nowUs)),
    extend: (set, key, held, nowUs) =>
      repeated(key, nowUs, () => inner.extend(set, key, held, nowUs)),
    block: (key, untilUs, nowUs) => repeated(key, nowUs, () => inner.block(key, untilUs, nowUs)),
    unblock: (key) => repeated(key, 0, () => inner.unblock(key)),
    reset: (key, nowUs) => repeated(key, nowUs, () => inner.reset(key, nowUs)),
    rulesOf(key) {
      rows.hash(key)
      rows.read()
      return inner.rulesOf(key)
    },
    clear() {
      for (let index = 0; index < region.buckets; index += 1) empty(index)
    },
    keys() {
      throw unlistable()
    },
    size: (nowUs) => sum(() => inUse(nowUs)),
    stats: () => ({
      // A terminated thread may not have counted its last change.
      rows: Math.max(0, words[ROWS]),
      maxKeys: region.maxKeys,
      blocked: Math.max(0, words[BLOCKS]),
      evictions: words[EVICTIONS],
      floored: words[FLOORED],
    }),
  }
}
