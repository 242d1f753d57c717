import { durationUs } from '../core/duration.ts'
import type { PenaltyOptions } from '../limiter/penalty.ts'

/**
 * A penalty is forgotten this many block durations after the block, and at least `within` after it.
 */
const FORGOTTEN = 10

/** ModelPenalty keeps the refusals of each part of a key as a list of instants, and its blocks. */
export interface ModelPenalty {
  /** The field that is blocked; undefined if keys have no fields. */
  readonly by: string | undefined
  /** Counts a refusal. Returns the end of the block that it causes, if any. */
  refused(part: string, nowUs: number): number | undefined
  forget(part: string): void
  clear(): void
  /** Returns the instants at which refusals and blocks of a part are forgotten. */
  instantsUs(part: string): number[]
  /** Returns the parts with remembered refusals or blocks. */
  used(nowUs: number): string[]
}

interface Record {
  refusedUs: readonly number[]
  /** How many blocks there were since they were forgotten last. */
  blocks: number
  forgottenUs: number
}

/** modelPenalty creates the penalty of these options. */
export function modelPenalty({ by, after, within, block }: PenaltyOptions): ModelPenalty {
  const us = (duration: string | number) => durationUs('model', duration, 1, Number.MAX_VALUE)
  const withinUs = us(within)
  const blocksUs = (Array.isArray(block) ? block : [block]).map(us)
  const records = new Map<string, Record>()

  /** Returns the refusals that count together: the first of them was less than `within` ago. */
  function countedUs({ refusedUs }: Record, nowUs: number): readonly number[] {
    return refusedUs.length > 0 && nowUs < refusedUs[0] + withinUs ? refusedUs : []
  }

  return {
    by,
    refused(part, nowUs) {
      const record = records.get(part) ?? { refusedUs: [], blocks: 0, forgottenUs: 0 }
      records.set(part, record)
      record.refusedUs = [...countedUs(record, nowUs), nowUs]
      if (record.refusedUs.length < after) return undefined
      record.refusedUs = []
      const before = nowUs < record.forgottenUs ? record.blocks : 0
      const lastsUs = blocksUs[before] ?? blocksUs[blocksUs.length - 1]
      record.blocks = before + 1
      record.forgottenUs = nowUs + lastsUs + Math.max(FORGOTTEN * lastsUs, withinUs)
      return nowUs + lastsUs
    },
    forget: (part) => void records.delete(part),
    clear: () => records.clear(),
    instantsUs(part) {
      const record = records.get(part)
      if (!record) return []
      return [...record.refusedUs.slice(0, 1).map((us) => us + withinUs), record.forgottenUs]
    },
    used: (nowUs) =>
      [...records].flatMap(([part, record]) =>
        countedUs(record, nowUs).length > 0 || nowUs < record.forgottenUs ? [part] : [],
      ),
  }
}
