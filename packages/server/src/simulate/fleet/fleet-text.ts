import { count, counted, percent } from '../report/shown.ts'
import { textTable } from '../report/text-table.ts'
import type { FleetReport } from './simulate-fleet.ts'

/** fleetText formats the reports as a table, with a summary in words. */
export function fleetText(reports: readonly FleetReport[]): string {
  const [{ setup }] = reports
  const keys = setup.keys === 1 ? 'one key' : `each of ${count(setup.keys)} keys`
  const load = `${count(setup.perSecond)} requests per second for ${keys}`
  return [
    `${setup.rule}, ${load}, ${count(setup.forMs / 1_000)} s, seed ${setup.seed}`,
    '',
    ...textTable(
      columns.map(({ head }) => ({ head, right: true })),
      reports.map((report) => columns.map(({ of }) => of(report))),
    ),
    '',
    'A(t) is what the rule admits in any interval t.',
    ...reports.flatMap((report) => sentences(report, reports)),
    '',
  ].join('\n')
}

const columns: readonly { readonly head: string; readonly of: (report: FleetReport) => string }[] =
  [
    { head: 'nodes', of: ({ setup }) => count(setup.nodes) },
    { head: 'lease', of: ({ setup }) => (setup.lease ? count(setup.lease.units) : '-') },
    { head: 'offered', of: ({ offered }) => count(offered) },
    { head: 'ideal', of: ({ ideal }) => count(ideal) },
    { head: 'admitted', of: ({ admitted }) => count(admitted) },
    { head: 'refused early', of: ({ under }) => percent(under) },
    { head: 'over the rule', of: ({ over }) => count(Math.ceil(over)) },
    { head: 'trips/decision', of: ({ tripsPerDecision }) => tripsPerDecision.toFixed(3) },
    { head: 'mean ms', of: ({ meanMs }) => meanMs.toFixed(2) },
    { head: 'bound', of: ({ bound }) => bound?.text ?? 'none' },
    { head: 'held', of: ({ bound }) => (bound ? (bound.held ? 'yes' : 'NO') : '-') },
  ]

function sentences(report: FleetReport, all: readonly FleetReport[]): string[] {
  const { setup, over, under, sources, offered, bound } = report
  const nodes = counted(setup.nodes, 'node')
  const lease = setup.lease ? `a lease of ${count(setup.lease.units)}` : 'no lease'
  const early = under > 0 ? `${percent(under)} refused too early` : 'nothing refused too early'
  const most = over > 0 ? `up to ${count(Math.ceil(over))} more than` : 'never more than'
  const shares = Object.entries(sources).map(
    ([source, decided]) => `${source} ${percent(decided / offered)}`,
  )
  return [
    `${nodes}, ${lease}: ${tripsText(report, all)}, ${early}, ${most} the rule admits. ` +
      `Decided by ${shares.join(', ')}.`,
    ...(bound && !bound.held
      ? [`  THE BOUND ${bound.text} DID NOT HOLD, by ${count(Math.ceil(-bound.spare))}.`]
      : []),
  ]
}

/** Compares a lease with no lease for the same number of nodes, if that was run as well. */
function tripsText({ setup, tripsPerDecision }: FleetReport, all: readonly FleetReport[]): string {
  const without = all.find((other) => other.setup.nodes === setup.nodes && !other.setup.lease)
  if (!setup.lease || !without) return `${tripsPerDecision.toFixed(2)} trips for each decision`
  const part = tripsPerDecision / without.tripsPerDecision - 1
  return part < 0 ? `${percent(-part)} of the trips saved` : `${percent(part)} more trips`
}
