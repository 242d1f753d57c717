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
  deadlineUs: number
  /** Later calls that were put before it. */
  overtaken: number
  /** Ends its delay in a leaky bucket. */
  delay?: AbortController
  resolve(checked: Checked): void
  reject(reason: unknown): void
}

/** Line is the calls that wait for one key. */
export interface Line {
  /** End its being woken by each of its parts. */
  wakes: readonly (() => void)[]
  /** The calls that are not admitted yet, in the order in which they go. */
  readonly places: Place[]
  /** The units that all of `places` want. */
  units: number
  /** Calls not answered yet: those in `places`, and those that wait out a delay. */
  waiting: number
  /** The call that is served: its check is under way, or the line sleeps until its next check. */
  head?: Place
  /** When the line wakes up. */
  wakeUs: number
  /** Whether something changed since the last check began. */
  isWoken?: boolean
  sleeper?: AbortController
}

/** insert puts a call into line and returns the units before it. */
export function insert(line: Line, place: Place): number {
  const { places } = line
  let at = places.length
  let ahead = line.units
  for (; at > 0 && overtakes(place, places[at - 1]); at -= 1) {
    places[at - 1].overtaken += 1
    ahead -= places[at - 1].waiter.cost
  }
  places.splice(at, 0, place)
  line.units += place.waiter.cost
  return ahead
}

function overtakes(place: Place, other: Place): boolean {
  return other.waiter.priority < place.waiter.priority && other.overtaken < MOST_OVERTAKING
}

/** remove takes a call out of line; false if it was not in line any more. */
export function remove(line: Line, place: Place): boolean {
  const at = line.places.indexOf(place)
  if (at < 0) return false
  line.places.splice(at, 1)
  line.units -= place.waiter.cost
  return true
}

/** wake makes the line check now. */
export function wake(line: Line): void {
  line.isWoken = true
  line.sleeper?.abort()
}
