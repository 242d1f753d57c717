import type { FleetReport } from './simulate-fleet.ts'

/** fleetText is the reports as a table, and what they come to in words. */
export function fleetText(reports: readonly FleetReport[]): string {
  const [{ setup }] = reports
  const keys = setup.keys === 1 ? 'one key' : `each of ${number(setup.keys)} keys`
  const load = `${number(setup.perSecond)} requests a second for ${keys}`
  return [
    `${setup.rule}, ${load}, ${number(setup.forMs / 1_000)} s, seed ${setup.seed}`,
    '',
    ...table(reports),
    '',
    'A(t) is what the rule admits in any interval t.',
    ...reports.flatMap((report) => sentences(report, reports)),
    '',
  ].join('\n')
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

function sentences(report: FleetReport, all: readonly FleetReport[]): string[] {
  const { setup, over, under, sources, offered, bound } = report
  const nodes = setup.nodes === 1 ? '1 node' : `${number(setup.nodes)} nodes`
  const lease = setup.lease ? `a lease of ${number(setup.lease.units)}` : 'no lease'
  const early = under > 0 ? `${percent(under)} refused too early` : 'nothing refused too early'
  const most = over > 0 ? `up to ${number(Math.ceil(over))} more than` : 'never more than'
  const shares = Object.entries(sources).map(
    ([source, count]) => `${source} ${percent(count / offered)}`,
  )
  return [
    `${nodes}, ${lease}: ${tripsText(report, all)}, ${early}, ${most} the rule admits. ` +
      `Decided by ${shares.join(', ')}.`,
    ...(bound && !bound.held
      ? [`  THE BOUND ${bound.text} DID NOT HOLD, by ${number(Math.ceil(-bound.spare))}.`]
      : []),
  ]
}

/** A lease is compared with none for as many nodes, if that was run as well. */
function tripsText({ setup, tripsPerDecision }: FleetReport, all: readonly FleetReport[]): string {
  const without = all.find((other) => other.setup.nodes === setup.nodes && !other.setup.lease)
  if (!setup.lease || !without) return `${tripsPerDecision.toFixed(2)} trips for each decision`
  const part = tripsPerDecision / without.tripsPerDecision - 1
  return part < 0 ? `${percent(-part)} of the trips saved` : `${percent(part)} more trips`
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
