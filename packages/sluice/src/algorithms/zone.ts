import { SluiceError, shown } from '../core/errors.ts'
import type { Param } from '../core/params.ts'

/**
 * Zone is a time zone. A local time is what its clocks show, in microseconds as if it were UTC. Where
 * clocks are set back, local times come twice; where they are set forward, some never come.
 */
export interface Zone {
  /** The local time of an instant. */
  localUs(us: number): number
  /** The first instant at which clocks show `localUs` or a later time. */
  reachedUs(localUs: number): number
}

const SECOND_US = 1_000_000

/** No zone is as far from UTC, and no zone undoes a change as soon: the soonest took a week. */
const DAY_US = 86_400_000_000

const utc: Zone = { localUs: (us) => us, reachedUs: (localUs) => localUs }

const zones = new Map([['UTC', utc]])

/** zoneOf is the zone of that name; it throws a `RangeError` where the runtime does not know it. */
export function zoneOf(name: string): Zone {
  const zone = zones.get(name) ?? createZone(name)
  zones.set(name, zone)
  return zone
}

function createZone(name: string): Zone {
  const number = 'numeric'
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    hourCycle: 'h23',
    ...{ year: number, month: number, day: number, hour: number, minute: number, second: number },
  })

  /** How far local time is ahead of UTC. Offsets are whole seconds. */
  function aheadUs(us: number): number {
    const ms = Math.floor(us / SECOND_US) * 1_000
    const [month, day, ...rest] = format.format(ms).match(/\d+/g)!.map(Number)
    const [year, hour, minute, second] = rest
    return (Date.UTC(year, month - 1, day, hour, minute, second) - ms) * 1_000
  }

  /** The first instant after `fromUs`, and at most `toUs`, with another offset. Whole seconds. */
  function changeUs(fromUs: number, toUs: number, offsetUs: number): number | undefined {
    if (fromUs >= toUs) return undefined
    let [last, first] = [fromUs, Math.min(fromUs + DAY_US, toUs)]
    if (aheadUs(first) === offsetUs) return changeUs(first, toUs, offsetUs)
    while (first - last > SECOND_US) {
      const middle = last + Math.floor((first - last) / 2 / SECOND_US) * SECOND_US
      if (aheadUs(middle) === offsetUs) last = middle
      else first = middle
    }
    return first
  }

  return {
    localUs: (us) => us + aheadUs(us),
    reachedUs(localUs) {
      let fromUs = localUs - DAY_US
      for (;;) {
        const offsetUs = aheadUs(fromUs)
        // After a gap that has this time in it, the gap's end.
        const us = Math.max(fromUs, localUs - offsetUs)
        const change = changeUs(fromUs, us, offsetUs)
        if (change === undefined) return us
        fromUs = change
      }
    },
  }
}

/** Words of names that are not written with one capital letter. */
const spelled = new Map(
  (
    'UTC UCT GMT GB NZ US PRC ROC ROK CET EET MET WET EST EDT CST CDT MST MDT PST PDT HST ACT NSW LHI ' +
    'CHAT SU IN of es au McMurdo DumontDUrville ComodRivadavia EasterIsland BajaNorte BajaSur'
  )
    .split(' ')
    .map((word) => [word.toLowerCase(), word]),
)

/** Capitals by a list of our own: runtimes differ in which of two names for a zone they prefer. */
function spell(name: string): string {
  const capital = (word: string) => word[0].toUpperCase() + word.slice(1)
  return name.toLowerCase().replace(/[a-z]+/g, (word) => spelled.get(word) ?? capital(word))
}

/**
 * zoneParam is the name of a time zone of the IANA database, in its usual capitals; `UTC` where it is
 * left out. Another name for the same zone stays another name.
 */
export const zoneParam: Param = {
  kind: 'word',
  choices: undefined,
  fallback: () => 'UTC',
  check(where, value) {
    try {
      if (typeof value === 'string' && /^[a-z][\w+/-]*$/i.test(value)) {
        const name = spell(value)
        zoneOf(name)
        return name
      }
    } catch {}
    throw new SluiceError(
      'SLUICE_OPTION',
      `${where} must be a time zone of the IANA database, such as 'Europe/Berlin', got ` +
        `${shown(value)}. If the name is right, update the runtime: its time zone data lacks it.`,
    )
  },
}
