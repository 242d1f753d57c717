import type { Decision } from '../core/decision.ts'
import type { RuleSet } from '../stores/store.ts'

/** Checked is what a check gives: a decision, and with an admitted one whatever belongs to it. */
export interface Checked {
  readonly decision: Decision
}

/** Waiter is one call that is ready to wait. What decides may answer later, and may throw. */
export interface Waiter<T extends Checked = Checked> {
  readonly cost: number
  /** Higher goes first. */
  readonly priority: number
  readonly maxWaitUs: number
  readonly maxWaiting: number
  readonly signal: AbortSignal | undefined
  /** `wake` of any of these wakes the line. All calls for a key have the same. Default: the key. */
  readonly parts?: readonly string[]
  /** The rules as they are now: they may change while the call is in line. */
  set(): RuleSet
  /** What `take` would decide. Spends nothing. */
  peek(set: RuleSet): Decision | Promise<Decision>
  /** Decides and spends. */
  take(set: RuleSet): T | Promise<T>
  /** The longest sleep of the head after a refusal, plus up to a quarter at random. Default: none. */
  pollUs?(refused: Decision): number
  /** Takes back what was admitted when the call had already given up. Default: it stays spent. */
  dropped?(admitted: T): void
}

/** Later calls that go before a call at most, whatever their priority. */
const MOST_OVERTAKING = 16

/** Place is one call in line. */
export interface Place {
  readonly waiter: Waiter
  /** Later calls that were put before it. */
  overtaken: number
  /** Whether something changed since its last check began. */
  isWoken: boolean
  sleeper?: AbortController
  /** Why the call is to end. */
  stop?: { readonly reason: unknown }
}

/** Line is the calls that wait for one key. */
export interface Line {
  /** The calls that are not admitted yet, in the order in which they go. */
  readonly places: Place[]
  /** The units that all of `places` want. */
  units: number
  /** All calls, with those that wait out a delay. */
  waiting: number
  /** Take it out of what `wake` reaches. */
  readonly unwakes: readonly (() => void)[]
}

/** enter puts a call into line. */
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

/** leave takes a call out of line, if it is in line. If it was the head, the next one checks. */
export function leave(line: Line, place: Place): void {
  const { places } = line
  const at = places.indexOf(place)
  if (at < 0) return
  places.splice(at, 1)
  line.units -= place.waiter.cost
  if (at === 0) wake(places[0])
}

/** unitsBefore is what the calls before one want; before one that is not in line, all of them. */
export function unitsBefore({ places, units }: Line, place: Place): number {
  // Most calls look ahead when they are last.
  const at = places.lastIndexOf(place)
  if (at < 0) return units
  return places.slice(at).reduce((before, { waiter }) => before - waiter.cost, units)
}

/** wake makes a call look again at once, or as soon as its present check is done. */
export function wake(place: Place | undefined): void {
  if (place === undefined) return
  place.isWoken = true
  place.sleeper?.abort()
}
