import { useEffect, useState } from 'preact/hooks'
import type { RuleDecision } from 'sluice'
import type { LiveAbout } from '../../src/dashboard/live-event.ts'
import type { ShownRule } from '../../src/shown-rule.ts'
import type { Reading } from './use-key.ts'
import { inWords, ruleInWords } from './words.ts'

const REDRAW_MS = 100

/** Gauges shows what each rule has left for a key, and moves on between two readings. */
export function Gauges({ reading, about }: { reading: Reading; about: LiveAbout }) {
  const [nowMs, setNowMs] = useState(performance.now())
  useEffect(() => {
    const timer = setInterval(() => setNowMs(performance.now()), REDRAW_MS)
    return () => clearInterval(timer)
  }, [])
  const { limits, rules, tier } = reading.state
  const isOwn = JSON.stringify(rules) !== JSON.stringify(about.tiers[tier])
  const ofClient = isOwn ? 'a rule of its own' : `a rule of tier ${tier}`
  const sinceMs = Math.max(0, nowMs - reading.atMs)
  return (
    <ul class="gauges">
      {Object.entries(limits).flatMap(([limiter, decision]) =>
        decision.rules.map((figures) => {
          const known = limiter === 'tiers' ? rules : (about.routes[limiter] ?? [])
          const rule = known.find(({ name }) => name === figures.rule)
          const where = limiter === 'tiers' ? ofClient : `a rule of route ${limiter}`
          return (
            <li key={`${limiter}/${figures.rule}`} data-limiter={limiter} data-rule={figures.rule}>
              <Gauge figures={figures} rule={rule} where={where} sinceMs={sinceMs} />
            </li>
          )
        }),
      )}
    </ul>
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
  const left = freshInMs === 0 ? capacity : remaining
  return (
    <>
      {title}
      <span class="figure">
        <b data-role="remaining">{left}</b> of {capacity} left
      </span>
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${100 * levelOf(rule, left, capacity, freshInMs)}%` }} />
      </span>
      <span class="small">{rule && ruleInWords(rule)}</span>
      <span class="small figure" data-role="fresh">
        {freshInMs === 0 ? 'fresh' : `fresh in ${inWords(freshInMs)}`}
      </span>
    </>
  )
}

/** Buckets refill between two whole units: their time to fresh tells how far they are. */
function levelOf(
  rule: ShownRule | undefined,
  left: number,
  capacity: number,
  freshInMs: number,
): number {
  if (!rule?.limit || !/bucket|gcra/.test(rule.algorithm)) return left / capacity
  const fullMs = (capacity * rule.perMs) / rule.limit
  return Math.max(0, Math.min(1, 1 - freshInMs / fullMs))
}
