import type { RouteForecast } from '../../src/api/routes-for.ts'
import type { LiveAbout } from '../../src/dashboard/live-event.ts'
import { leftIn } from './left-of.ts'
import type { KeyState } from './use-key.ts'
import { inFull, inWords } from './words.ts'

/** VerdictProps: the state of a key, the configuration, and the age of the state. */
interface VerdictProps {
  readonly state: KeyState
  readonly about: LiveAbout
  readonly sinceMs: number
}

/** Verdict says in one sentence per reason what would happen to a request now. */
export function Verdict({ state, about, sinceMs }: VerdictProps) {
  const blocked = Object.values(state.limits).find(({ source }) => source === 'blocked')
  if (blocked) {
    return (
      <p class="verdict refused" data-role="blocked">
        ✕ Blocked on every route with a limit, shadow mode included, for another{' '}
        {inWords(Math.max(0, blocked.retryAfterMs - sinceMs))}
      </p>
    )
  }
  const routes = state.routes.length > 0 ? state.routes : [byApi(state)]
  const reason = (route: RouteForecast) => {
    const left = inFull(leftIn(state, about, route.limiter, sinceMs))
    return `cost ${inFull(route.cost)}, ${left} left, ${passes(route, sinceMs)}`
  }
  const refusing = routes.filter(({ wouldAllow, retryAfterMs }) => {
    const isOver = retryAfterMs !== null && retryAfterMs <= sinceMs
    return !wouldAllow && !isOver
  })
  const refused = grouped(
    refusing.filter(({ shadow }) => !shadow),
    reason,
  )
  const shadowed = grouped(
    refusing.filter(({ shadow }) => shadow),
    reason,
  )
  return (
    <div data-role="verdict">
      {refused.length === 0 && <p class="verdict allowed">✓ Would pass everywhere now</p>}
      {refused.map((each) => (
        <p key={each.figures} class="verdict refused">
          ✕ Refused now on <Names names={each.names} />: {each.figures}
        </p>
      ))}
      {shadowed.map((each) => (
        <p key={each.figures} class="shadowed">
          ◌ In shadow mode, <Names names={each.names} /> would refuse: {each.figures}
        </p>
      ))}
    </div>
  )
}

function Names({ names }: { names: readonly string[] }) {
  const all = names.flatMap((name, i) => [i === 0 ? '' : ', ', <code key={name}>{name}</code>])
  return <>{all}</>
}

/** Without routes there are only decisions of the API. */
function byApi({ limits: { tiers } }: KeyState): RouteForecast {
  const { allowed, remaining, retryAfterMs } = tiers
  return {
    route: 'API',
    limiter: 'tiers',
    cost: 1,
    shadow: false,
    allowed,
    wouldAllow: allowed,
    remaining,
    retryAfterMs,
  }
}

function passes({ retryAfterMs }: RouteForecast, sinceMs: number): string {
  return retryAfterMs === null ? 'can never pass' : `passes in ${inWords(retryAfterMs - sinceMs)}`
}

/** Groups routes with the same reason. */
function grouped(routes: readonly RouteForecast[], reasonOf: (route: RouteForecast) => string) {
  const groups = new Map<string, string[]>()
  for (const route of routes) {
    const figures = reasonOf(route)
    groups.set(figures, [...(groups.get(figures) ?? []), route.route])
  }
  return [...groups].map(([figures, names]) => ({ figures, names }))
}
