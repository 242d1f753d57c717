import type { FleetReport } from './simulate-fleet.ts'

/** fleetText is the reports as a table, and what they come to in words. */
export function fleetText(reports: readonly FleetReport[]): string {
  const [{ setup }] = reports
  const load = `${number(setup.perSecond)} requests a second for each of ${number(setup.keys)} keys`
  const title = `${setup.rule}, ${load}, ${number(setup.forMs / 1_000)} s, seed ${setup.seed}`
  return [title, '', ...table(reports), '', ...reports.flatMap(sentences), ''].join('\n')
}

const columns: readonly { readonly head: string; of(report: FleetReport): string }[] = [
  { head: 'nodes', of: ({ setup }) => number(setup.nodes) },
  { head: 'lease', of: ({ setup }) => (setup.lease ? number(setup.lease.units) : '-') },
  { head: 'offered', of: ({ offered }) => number(offered) },
  { head: 'ideal', of: ({ ideal }) => number(ideal) },
  { head: 'admitted', of: ({ admitted }) => number(admitted) },
  { head: 'refused early', of: ({ under }) => percent(under) },
  { head: 'over the rule', of: ({ over }) => number(Math.ceil(over)) },
  { head: 'trips/decision', of: ({ tripsPerDecision }) => tripsPerDecision.toFixed(3) },
  { head: 'mean ms', of: ({ meanMs }) => meanMs.toFixed(2) },
  { head: 'bound', of: ({ bound }) => bound?.text ?? 'none' },
  { head: 'held', of: ({ bound }) => (bound ? (bound.held ? 'yes' : 'NO') : '-') },
]

function table(reports: readonly FleetReport[]): string[] {
  const rows = [
    columns.map(({ head }) => head),
    ...reports.map((one) => columns.map((c) => c.of(one))),
  ]
  const widths = columns.map((_, i) => Math.max(...rows.map((row) => row[i].length)))
  return rows.map((row) => row.map((cell, i) => cell.padStart(widths[i])).join('  '))
}

function sentences(report: FleetReport): string[] {
  const { setup, over, under, tripsPerDecision, sources, offered, bound } = report
  const { nodes, lease } = setup
  const fleet = `${nodes === 1 ? '1 node' : `${number(nodes)} nodes`}`
  const who = lease ? `A lease of ${number(lease.units)} on ${fleet}` : `No lease on ${fleet}`
  const saved = 1 - tripsPerDecision
  const trips =
    saved >= 0
      ? `saves ${percent(saved)} of the trips to Redis`
      : `takes ${percent(-saved)} more trips than decisions`
  const early = under > 0 ? `refuses ${percent(under)} too early` : 'refuses nothing too early'
  const most =
    over > 0 ? `admits up to ${number(Math.ceil(over))} beyond the rule` : 'never admits more'
  const shares = Object.entries(sources).map(
    ([source, count]) => `${source} ${percent(count / offered)}`,
  )
  return [
    `${who} ${trips}, ${early} and ${most}. Decided by: ${shares.join(', ')}.`,
    ...(bound && !bound.held
      ? [`  THE BOUND ${bound.text} WAS BROKEN by ${number(Math.ceil(-bound.spare))}.`]
      : []),
  ]
}

function number(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 1 })
}

/** Small parts are not nothing. */
function percent(part: number): string {
  const value = 100 * part
  const digits = value === 0 || value >= 10 ? 0 : value >= 0.1 ? 1 : 3
  return `${value.toFixed(digits)} %`
}
