import type { RouteForecast } from '../../src/api/routes-for.ts'
import type { KeyState } from './use-key.ts'
import { inFull, inWords } from './words.ts'

/** Verdict says in a sentence what would happen to a request now. */
export function Verdict({ state, sinceMs }: { state: KeyState; sinceMs: number }) {
  const blocked = Object.values(state.limits).find(({ source }) => source === 'blocked')
  if (blocked) {
    return (
      <p class="verdict refused" data-role="blocked">
        ✕ Blocked everywhere, for another {inWords(Math.max(0, blocked.retryAfterMs - sinceMs))}
      </p>
    )
  }
  const routes = state.routes.length > 0 ? state.routes : [byApi(state)]
  const refused = grouped(routes, sinceMs, false)
  const shadowed = grouped(routes, sinceMs, true)
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
          ◌ In shadow, <Names names={each.names} /> would refuse it: {each.figures}
        </p>
      ))}
    </div>
  )
}

function Names({ names }: { names: readonly string[] }) {
  const all = names.flatMap((name, i) => [i === 0 ? '' : ', ', <code key={name}>{name}</code>])
  return <>{all}</>
}

/** Without routes there are only decisions for other programs. */
function byApi({ limits: { tiers } }: KeyState): RouteForecast {
  const { allowed, remaining, retryAfterMs } = tiers
  return {
    route: 'API',
    limiter: 'tiers',
    cost: 1,
    shadow: false,
    allowed,
    remaining,
    retryAfterMs,
  }
}

/** Routes that would refuse, together where the reason is the same. */
function grouped(routes: readonly RouteForecast[], sinceMs: number, shadow: boolean) {
  const groups = new Map<string, string[]>()
  for (const each of routes) {
    const { retryAfterMs } = each
    const isOver = retryAfterMs !== null && retryAfterMs <= sinceMs
    if (each.shadow !== shadow || each.allowed || isOver) continue
    const figures = `cost ${each.cost}, ${inFull(each.remaining)} left, ${
      retryAfterMs === null ? 'can never pass' : `passes in ${inWords(retryAfterMs - sinceMs)}`
    }`
    groups.set(figures, [...(groups.get(figures) ?? []), each.route])
  }
  return [...groups].map(([figures, names]) => ({ figures, names }))
}
