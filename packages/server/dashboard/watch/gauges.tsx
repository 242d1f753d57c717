import type { RuleDecision } from 'sluice'
import type { RouteForecast } from '../../src/api/routes-for.ts'
import type { LiveAbout } from '../../src/dashboard/live-event.ts'
import type { ShownRule } from '../../src/shown-rule.ts'
import { leftOf, ruleOf } from './left-of.ts'
import type { KeyState } from './use-key.ts'
import { inFull, inWords, ruleInWords } from './words.ts'

/** GaugesProps: the state of a key, the configuration, and the age of the state. */
interface GaugesProps {
  readonly state: KeyState
  readonly about: LiveAbout
  readonly sinceMs: number
}

/** Gauges shows what each rule has left for a key. */
export function Gauges({ state, about, sinceMs }: GaugesProps) {
  const { limits, rules, tier } = state
  const isOwn = JSON.stringify(rules) !== JSON.stringify(about.tiers[tier])
  const ofClient = isOwn ? 'its own rule' : `a rule of tier ${tier}`
  return (
    <ul class="gauges">
      {Object.entries(limits).flatMap(([limiter, decision]) =>
        decision.rules.map((figures) => {
          const rule = ruleOf(state, about, limiter, figures.rule)
          const where = limiter === 'tiers' ? ofClient : `a rule of route ${limiter}`
          const routes = state.routes.filter((each) => each.limiter === limiter)
          return (
            <li key={`${limiter}/${figures.rule}`} data-limiter={limiter} data-rule={figures.rule}>
              <Gauge figures={figures} rule={rule} where={where} sinceMs={sinceMs} />
              <Costs routes={routes} limiter={limiter} />
            </li>
          )
        }),
      )}
    </ul>
  )
}

/** Lists costs other than 1, and routes in shadow mode. */
function Costs({ routes, limiter }: { routes: readonly RouteForecast[]; limiter: string }) {
  const shown = routes.filter(
    ({ cost, shadow, route }) => cost !== 1 || shadow || route === limiter,
  )
  if (shown.length === 0) return null
  return (
    <span class="small costs">
      {shown.map(({ route, cost, shadow }) => (
        <span key={route}>
          {route === limiter ? '' : `${route}: `}a request costs {inFull(cost)}
          {shadow && <span class="badge">shadow</span>}
        </span>
      ))}
    </span>
  )
}

interface GaugeProps {
  readonly figures: RuleDecision
  readonly rule: ShownRule | undefined
  readonly where: string
  readonly sinceMs: number
}

function Gauge({ figures, rule, where, sinceMs }: GaugeProps) {
  const remaining = figures.remaining as number | null
  const capacity = figures.capacity as number | null
  const freshInMs = Math.max(0, figures.resetAfterMs - sinceMs)
  const title = (
    <span>
      <b>{figures.rule}</b> <span class="small">{where}</span>
    </span>
  )
  if (remaining === null || capacity === null) {
    return (
      <>
        {title}
        <span class="figure">no limit</span>
      </>
    )
  }
  const left = leftOf(rule, { remaining, capacity, freshInMs })
  return (
    <>
      {title}
      <span class="figure">
        <b data-role="remaining">{inFull(left)}</b> of {inFull(capacity)} left
      </span>
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${(100 * left) / capacity}%` }} />
      </span>
      <span class="small">{rule && ruleInWords(rule)}</span>
      <span class="small figure" data-role="fresh">
        {freshInMs === 0 ? 'full' : `full in ${inWords(freshInMs)}`}
      </span>
    </>
  )
}
