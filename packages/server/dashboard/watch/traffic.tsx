import { useState } from 'preact/hooks'
import type { LiveAbout, LiveCount } from '../../src/dashboard/live-event.ts'
import { Chart } from './chart.tsx'
import { type LiveState, sumOf, totals } from './live-state.ts'
import { RefusedCounts } from './refused-counts.tsx'
import { inFull } from './words.ts'

/** Traffic charts allowed and refused decisions by route and tier. */
export function Traffic({ state: { seconds } }: { state: LiveState }) {
  const [route, setRoute] = useState('')
  const [tier, setTier] = useState('')
  const rows = totals(seconds, ({ route, tier }) => JSON.stringify([route, tier]))
  const sums = seconds.map(({ counts, forMs }) => {
    const { allowed, refused } = sumOf(counts, { route, tier })
    return { allowed: (allowed * 1_000) / forMs, refused: (refused * 1_000) / forMs }
  })
  const choices = (name: 'route' | 'tier') => [...new Set(rows.map(({ about }) => about[name]))]
  return (
    <section class="panel traffic" aria-labelledby="traffic-title">
      <div class="heading">
        <h2 id="traffic-title">Decisions per second</h2>
        <Choice label="Route" value={route} choices={choices('route')} choose={setRoute} />
        <Choice label="Tier" value={tier} choices={choices('tier')} choose={setTier} />
      </div>
      <Chart
        label="Allowed and refused decisions per second, over the last five minutes"
        times={seconds.map(({ atMs }) => atMs / 1_000)}
        lines={[
          { label: 'allowed', colour: '--allowed', values: sums.map(({ allowed }) => allowed) },
          {
            label: 'refused',
            colour: '--refused',
            isDashed: true,
            values: sums.map(({ refused }) => refused),
          },
        ]}
        format={(value) => Number(value.toFixed(1)).toLocaleString('en')}
      />
      <div class="scroll">
        <table>
          <caption>
            By route and tier, last 5 minutes. <i>In shadow mode</i>: refused by a rule, but let
            through because the route is in shadow mode.
          </caption>
          <thead>
            <tr>
              <th scope="col">Route</th>
              <th scope="col">Tier</th>
              <th scope="col">Allowed</th>
              <th scope="col">Refused</th>
              <th scope="col">In shadow mode</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, about, allowed, refused, shadowed }) => (
              <tr key={name} data-route={about.route} data-tier={about.tier}>
                <th scope="row">{about.route || 'API'}</th>
                <td>{about.tier}</td>
                <td data-role="allowed">{inFull(allowed)}</td>
                <td data-role="refused" class={refused > 0 ? 'refused' : ''}>
                  {inFull(refused)}
                </td>
                <td>{inFull(shadowed)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p class="small">No decisions in the last five minutes.</p>}
      </div>
    </section>
  )
}

function Choice(props: {
  label: string
  value: string
  choices: string[]
  choose(value: string): void
}) {
  const { label, value, choices, choose } = props
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        <option value="">all</option>
        {choices
          .filter((choice) => choice !== '')
          .map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
      </select>
    </label>
  )
}

/** Refusals shows which rules refuse. */
export function Refusals({ state: { seconds, start } }: { state: LiveState }) {
  const rules = totals(seconds, ({ rule, tier, route }) => JSON.stringify([rule, tier, route]))
    .filter(({ refused, shadowed }) => refused + shadowed > 0)
    .sort((a, b) => b.refused - a.refused || b.shadowed - a.shadowed)
    .slice(0, 10)
  const most = Math.max(1, ...rules.map(({ refused, shadowed }) => refused + shadowed))
  return (
    <section class="panel" aria-labelledby="refusals-title">
      <h2 id="refusals-title">
        Refusals by rule <span class="small">in the last 5 minutes</span>
      </h2>
      {rules.length === 0 && <p class="small">No refusals.</p>}
      <ul class="bars">
        {rules.map(({ name, about, refused, shadowed }) => (
          <li key={name} data-rule={about.rule}>
            <span>
              <b>
                {about.route || 'API'} · {about.tier}
              </b>{' '}
              <span class="small">
                {about.rule} {figuresOf(start, about)}
              </span>
            </span>
            <RefusedCounts refused={refused} shadowed={shadowed} />
            <span class="bar" aria-hidden="true">
              <span class="is-refused" style={{ width: `${(100 * refused) / most}%` }} />
              <span class="is-shadowed" style={{ width: `${(100 * shadowed) / most}%` }} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The configured rule as text; empty if a client has its own rules. */
function figuresOf({ routes, tiers }: LiveAbout, { route, tier, rule }: LiveCount): string {
  const found = (routes[route] ?? tiers[tier])?.find(({ name }) => name === rule)
  return found?.text ?? ''
}
