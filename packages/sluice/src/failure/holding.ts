import type { Cost } from '../core/cost.ts'
import type { Decision } from '../core/decision.ts'
import { type Held, newGeneration } from '../core/held.ts'
import type { RuleSet } from '../stores/store.ts'
import type { Asking } from './asking.ts'
import type { Local } from './local.ts'
import type { Asked, Pending, Wanted } from './pending.ts'

/** Acquired is a decision, and the holds of an admission; undefined if the store did not count it. */
interface Acquired {
  readonly decision: Decision
  readonly held: Held | undefined
}

/** Holding executes the calls of permits. A permit from the local fallback is also released there. */
export interface Holding {
  /** Decides and spends. The decision comes with the holds of the permit. */
  acquire(call: Asked, isCounted: boolean): Promise<Acquired>
  /**
   * Ends the holds of a permit, and charges `change`; negative units are refunded. Never rejects. A
   * request that could not be sent is retried for `holdUs`. One that was sent is not, since the
   * store may have executed it; at worst its units come back when the hold ends.
   */
  finish(call: Asked, held: Held, change: Cost, holdUs: number): Promise<void>
  /** Restarts the holds of a permit now; undefined if they have ended or the store did not answer. */
  extend(call: Asked, held: Held): Promise<Held | undefined>
}

/** createHolding creates it with exponential backoff: the first pause takes `firstPauseMs`. */
export function createHolding(asking: Asking, local: Local, firstPauseMs: number): Holding {
  async function acquire(call: Asked, isCounted: boolean): Promise<Acquired> {
    const own = { generation: newGeneration(), isCounted: counts(call.set, isCounted) }
    const wanted: Wanted = { verb: 'check', ...call, ...own }
    let pending: Pending | undefined
    const [decided] = asking.decide([wanted], (made) => {
      pending = made
    })
    const decision = (await decided) as Decision
    return { decision, held: pending!.result }
  }

  async function finish(call: Asked, held: Held, change: Cost, holdUs: number): Promise<void> {
    const wanted: Wanted = { verb: 'finish', ...call, held, change }
    if (local.holds(held)) {
      local.act(wanted)
      return
    }
    const untilMs = performance.now() + holdUs / 1_000
    for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
      let pending: Pending | undefined
      const [finished] = asking.insist([wanted], (made) => {
        pending = made
      })
      try {
        await finished
        return
      } catch {
        if (pending!.isSent || performance.now() + pauseMs > untilMs) return
        await pause(pauseMs)
      }
    }
  }

  async function extend(call: Asked, held: Held): Promise<Held | undefined> {
    const wanted: Wanted & { result?: Held } = { verb: 'extend', ...call, held }
    if (local.holds(held)) {
      local.act(wanted)
      return wanted.result
    }
    let pending: Pending | undefined
    const [extended] = asking.insist([wanted], (made) => {
      pending = made
    })
    await extended.catch(() => {})
    return pending!.result
  }

  return { acquire, finish, extend }
}

/**
 * counts tells whether to count a refusal. Without a penalty it is true: all checks then look
 * alike.
 */
export function counts({ penalty }: RuleSet, isCounted: boolean): boolean {
  return isCounted || penalty === undefined
}

/** Waits without keeping the process alive. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer: { unref?(): void } = setTimeout(resolve, ms) as never
    timer.unref?.()
  })
}
