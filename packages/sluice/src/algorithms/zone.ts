import { SluiceError, shown } from '../core/errors.ts'
import type { Param } from '../core/params.ts'

/**
 * Zone converts between instants and local times of a time zone. A local time is what clocks there
 * show, in microseconds, read as if it were UTC. When clocks are set back, local times repeat; when
 * they are set forward, some are skipped.
 */
export interface Zone {
  /** Returns the local time of an instant. */
  localUs(us: number): number
  /** Returns the first instant at which clocks show `localUs` or a later time. */
  reachedUs(localUs: number): number
}

const SECOND_US = 1_000_000

/** More than any zone's offset from UTC, and less than the time between two changes of a zone. */
const DAY_US = 86_400_000_000

const utc: Zone = { localUs: (us) => us, reachedUs: (localUs) => localUs }

const zones = new Map([['UTC', utc]])

/** zoneOf returns the zone of that name. Throws a `RangeError` if the runtime does not know it. */
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

  /** Returns how far local time is ahead of UTC. Offsets are whole seconds. */
  function aheadUs(us: number): number {
    const ms = Math.floor(us / SECOND_US) * 1_000
    const [month, day, ...rest] = format.format(ms).match(/\d+/g)!.map(Number)
    const [year, hour, minute, second] = rest
    return (Date.UTC(year, month - 1, day, hour, minute, second) - ms) * 1_000
  }

  /** Returns the first instant after `fromUs`, up to `toUs`, with another offset. Whole seconds. */
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
        // If clocks skip this local time, `fromUs` is the end of the gap.
        const us = Math.max(fromUs, localUs - offsetUs)
        const change = changeUs(fromUs, us, offsetUs)
        if (change === undefined) return us
        fromUs = change
      }
    },
  }
}

/** Words in zone names that are not spelled with a single leading capital. */
const spelled = new Map(
  (
    'UTC UCT GMT GB NZ US PRC ROC ROK CET EET MET WET EST EDT CST CDT MST MDT PST PDT HST ACT NSW LHI ' +
    'CHAT SU IN of es au McMurdo DumontDUrville ComodRivadavia EasterIsland BajaNorte BajaSur'
  )
    .split(' ')
    .map((word) => [word.toLowerCase(), word]),
)

/**
 * Capitalizes a zone name. `Intl` is no help: runtimes replace some names by another of that zone.
 */
function spell(name: string): string {
  const capital = (word: string) => word[0].toUpperCase() + word.slice(1)
  return name.toLowerCase().replace(/[a-z]+/g, (word) => spelled.get(word) ?? capital(word))
}

/**
 * zoneParam is a parameter that names a time zone of the IANA database. Default: `UTC`. The check
 * normalizes capitals but keeps aliases: two names of one zone stay different.
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
