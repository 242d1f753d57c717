import type { Decision } from '../core/decision.ts'
import type { RuleSet } from '../stores/store.ts'

/** Checked is the result of a check: a decision, and, if it admits, further data such as a permit. */
export interface Checked {
  readonly decision: Decision
}

/** Waiter is a call that is ready to wait. Its decisions may be asynchronous, and may throw. */
export interface Waiter<T extends Checked = Checked> {
  readonly cost: number
  /** Higher goes first. */
  readonly priority: number
  readonly maxWaitUs: number
  readonly maxWaiting: number
  readonly signal: AbortSignal | undefined
  /**
   * `wake` of any of these parts wakes the queue. They are the same for all calls for a key.
   * Default: the key.
   */
  readonly parts?: readonly string[]
  /** Returns the present rules, which may change while the call waits. */
  set(): RuleSet
  /** Returns what `take` would decide. Spends nothing. */
  peek(set: RuleSet): Decision | Promise<Decision>
  /** Decides and spends. */
  take(set: RuleSet): T | Promise<T>
  /**
   * Returns the longest sleep of the head after a refusal, before random jitter of up to a quarter.
   * Default: no limit.
   */
  pollUs?(refused: Decision): number
  /** Undoes an admission that arrives after the call has given up. Default: it stays spent. */
  dropped?(admitted: T): void
}

/** The most later calls that may overtake a call by priority. */
const MOST_OVERTAKING = 16

/** Place is a call in a queue. */
export interface Place {
  readonly waiter: Waiter
  /** The number of later calls that have overtaken it. */
  overtaken: number
  /** Whether something changed since its last check began. */
  isWoken: boolean
  sleeper?: AbortController
  /** Set to end the call, with the reason. */
  stop?: { readonly reason: unknown }
}

/** Line is the queue of calls for one key. */
export interface Line {
  /** The calls that are not admitted yet, in their order. */
  readonly places: Place[]
  /** The sum of the units that `places` request. */
  units: number
  /** The number of calls, including admitted ones that wait out a delay. */
  waiting: number
  /** Functions that unregister the queue from `wake`. */
  readonly unwakes: readonly (() => void)[]
}

/** enter adds a call to a queue. */
export function enter(line: Line, place: Place): void {
  const { places } = line
  let at = places.length
  while (at > 0 && overtakes(place, places[at - 1])) {
    at -= 1
    places[at].overtaken += 1
  }
  places.splice(at, 0, place)
  line.units += place.waiter.cost
}

function overtakes(place: Place, other: Place): boolean {
  return other.waiter.priority < place.waiter.priority && other.overtaken < MOST_OVERTAKING
}

/** leave removes a call from its queue, if it is in it. If it was the head, the next one checks. */
export function leave(line: Line, place: Place): void {
  const { places } = line
  const at = places.indexOf(place)
  if (at < 0) return
  places.splice(at, 1)
  line.units -= place.waiter.cost
  if (at === 0) wake(places[0])
}

/** unitsBefore returns the units requested before a call; for a call outside the queue, all units. */
export function unitsBefore({ places, units }: Line, place: Place): number {
  // Search from the end: most calls ask when they are last.
  const at = places.lastIndexOf(place)
  if (at < 0) return units
  return places.slice(at).reduce((before, { waiter }) => before - waiter.cost, units)
}

/** wake makes a call check again at once, or after its present check. */
export function wake(place: Place | undefined): void {
  if (place === undefined) return
  place.isWoken = true
  place.sleeper?.abort()
}
