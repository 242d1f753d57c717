import type { Cost } from '../core/cost.ts'
import type { Decision } from '../core/decision.ts'
import { type Held, newGeneration } from '../core/held.ts'
import type { RuleSet } from '../stores/store.ts'
import type { Asking } from './asking.ts'
import type { Local } from './local.ts'
import type { Asked, Pending, Wanted } from './pending.ts'

/** Acquired is a decision, and what it holds if it admits; undefined where that was not counted. */
interface Acquired {
  readonly decision: Decision
  readonly held: Held | undefined
}

/** Holding is what permits ask of a store. A permit that was given here, while it failed, ends here. */
export interface Holding {
  /** Decides and spends; what a permit holds comes with the decision. */
  acquire(call: Asked, isCounted: boolean): Promise<Acquired>
  /**
   * Ends what a permit holds, and charges or gives back `change`. Never rejects. What was not sent is
   * sent again for `holdUs`; of what may have been done, the units come back when the hold ends.
   */
  finish(call: Asked, held: Held, change: Cost, holdUs: number): Promise<void>
  /** Makes what a permit holds begin now; undefined if it has ended, or that is not known. */
  extend(call: Asked, held: Held): Promise<Held | undefined>
}

/** createHolding pauses for `firstPauseMs` before it repeats a call, then twice as long each time. */
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

/** counts tells whether a refusal counts. Without a penalty all refusals are alike. */
export function counts({ penalty }: RuleSet, isCounted: boolean): boolean {
  return isCounted || penalty === undefined
}

/** Waits, without keeping the process alive for that. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer: { unref?(): void } = setTimeout(resolve, ms) as never
    timer.unref?.()
  })
}
