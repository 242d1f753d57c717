import type { Figures } from '../../decision.ts'
import type { Answer } from './batch.ts'
import { createRecent } from './recent.ts'
import type { RedisRules } from './rule-set.ts'
import { decideOn } from './view.ts'

export interface DenyCacheOptions {
  /** The longest a refusal is remembered, in milliseconds. Default 2,000. */
  readonly maxMs?: number
  /** Keys remembered at most. Default 10,000. */
  readonly maxKeys?: number
}

/** A refusal, and until when it holds by our clock. */
interface Refusal {
  readonly cost: number
  readonly answer: Answer
  readonly untilMs: number
}

/**
 * DenyCache remembers refusals: the same key and cost is refused again without a trip, until the
 * time it was told to come back.
 */
export interface DenyCache {
  /** The figures of a refusal that still holds. */
  recall(set: RedisRules, key: string, cost: number): Figures | undefined
  note(key: string, cost: number, answer: Answer): void
  drop(key: string): void
  clear(): void
}

export function createDenyCache({ maxMs, maxKeys }: Required<DenyCacheOptions>): DenyCache {
  const refusals = createRecent<Refusal>(maxKeys)
  return {
    recall(set, key, cost) {
      const refusal = refusals.get(key)
      if (!refusal || refusal.cost !== cost || refusal.answer.view.set !== set) return undefined
      const nowMs = performance.now()
      if (nowMs >= refusal.untilMs) return undefined
      const { view, nowUs, sentMs } = refusal.answer
      // From when it was sent: not a moment later than Redis would admit it.
      const figures = decideOn(view, cost, false, nowUs + Math.floor((nowMs - sentMs) * 1_000))
      figures.source = 'cache'
      return figures
    },
    note(key, cost, answer) {
      const { figures, sentMs } = answer
      const waitUs = Math.max(figures.blockedUs, ...figures.waitUs)
      if (waitUs === 0) return
      const untilMs = sentMs + Math.min(maxMs, waitUs / 1_000)
      refusals.set(key, { cost, answer, untilMs })
    },
    drop: refusals.delete,
    clear: refusals.clear,
  }
}
