import {
  clientsText,
  hasRoutes,
  noSuggestion,
  notesOf,
  refusedOf,
  routeName,
  trafficNotes,
  WHOLE_SECONDS,
} from './notes.ts'
import type { Report, RuleSetReport } from './report.ts'
import { clockTime, count, counted, part, percent, plain, shareName, span } from './shown.ts'
import { sparkline, textTable } from './text-table.ts'

/** textReport formats a report for a terminal. */
export function textReport(report: Report): string {
  const lines = [
    ...trafficLines(report),
    ...comparisonLines(report),
    ...report.ruleSets.flatMap((set) => ruleSetLines(set, report)),
    '',
    ...usageLines(report),
    '',
    ...suggestionLines(report),
  ]
  return `${lines.join('\n')}\n`
}

function trafficLines({ source, traffic }: Report): string[] {
  const { requests, units, timeline } = traffic
  const lines: string[] = []
  if (source.kind === 'scenario') {
    const { scenario, ratePerSecond, forMs, seed } = source
    const what = `${counted(source.clients, 'client')}, ${ratePerSecond}/s for ${span(forMs)}`
    lines.push(`Scenario ${scenario}: ${what}, seed ${seed}`)
  } else {
    lines.push(...source.formats.map((format) => plain(format, 200)))
  }
  const inUnits = units === requests ? '' : `, ${counted(units, 'unit')}`
  lines.push(`${counted(requests, 'request')}${inUnits} by ${clientsText(traffic)}`)
  const [from, to] = [clockTime(traffic.startTime), clockTime(traffic.endTime)]
  lines.push(`${from} to ${to} UTC, ${span(traffic.spanMs)}`)
  if (source.kind === 'log') {
    const { unreadable, problems, reordered, late, wholeSeconds } = source
    if (wholeSeconds) lines.push(WHOLE_SECONDS)
    if (unreadable > 0) lines.push(`unreadable lines: ${part(unreadable, source.lines)}`)
    for (const { file, line, reason } of problems) {
      lines.push(`  ${plain(file, 200)}:${line}  ${plain(reason, 200)}`)
    }
    if (unreadable > problems.length && problems.length > 0) lines.push('  …')
    if (reordered > 0) lines.push(`lines reordered by time: ${count(reordered)}`)
    if (late > 0) {
      lines.push(`lines too late to reorder: ${part(late, requests)}`)
      lines.push('  they count at the current time of the clock: sort the log if there are many')
    }
  }
  lines.push(...trafficNotes(traffic))
  lines.push(
    `requests, ${span(timeline.binMs)} a bar, at most ${count(Math.max(...timeline.requests))}`,
  )
  lines.push(`  ${sparkline(timeline.requests)}`)
  return lines
}

function usageLines({ usage, traffic }: Report): string[] {
  const heads = usage[0].percentiles.map(({ share }) => ({ head: shareName(share), right: true }))
  return [
    `The most ${traffic.units === traffic.requests ? 'requests' : 'units'} of a client in one window of the clock`,
    ...textTable(
      [{ head: 'window' }, ...heads],
      usage.map(({ per, percentiles }) => [per, ...percentiles.map(({ use }) => count(use))]),
    ),
  ]
}

function suggestionLines({ suggestions, traffic }: Report): string[] {
  if (suggestions.length === 0) return [noSuggestion(traffic)]
  return [
    'Suggested limits: a quarter above what most clients use, rounded up. Use over a limit is counted in',
    'windows of the clock. The suggested burst is three times what they use in a second; --rule',
    "shows what any rule would have done, such as 'LIMIT/PER burst N'.",
    ...textTable(
      [
        { head: 'rule' },
        { head: 'burst', right: true },
        { head: 'taken from' },
        { head: 'clients over', right: true },
        { head: 'units over', right: true },
      ],
      suggestions.map(({ rule, burst, share, use, clientsOver, unitsOver }) => [
        rule,
        burst === undefined ? '' : String(burst),
        `${percent(share)} of clients: at most ${count(use)}`,
        part(clientsOver, traffic.clients),
        part(unitsOver, traffic.units),
      ]),
    ),
  ]
}

function comparisonLines({ ruleSets }: Report): string[] {
  if (ruleSets.length === 0) return []
  return [
    '',
    'What each rule set would have done',
    ...textTable(
      [
        { head: 'rule set' },
        { head: 'requests', right: true },
        { head: 'refused', right: true },
        { head: 'clients refused', right: true },
      ],
      ruleSets.map((set) => [
        plain(set.name),
        count(set.requests),
        part(set.refused, set.requests),
        part(set.refusedClients, set.clients),
      ]),
    ),
  ]
}

function ruleSetLines(set: RuleSetReport, { traffic }: Report): string[] {
  const { refused, byRule, byTier, top, timeline, change } = set
  const lines = ['', plain(set.name)]
  if (refused > 0) {
    const most = count(Math.max(...timeline))
    lines.push(`  refusals, ${span(traffic.timeline.binMs)} a bar, at most ${most}`)
    lines.push(`  ${sparkline(timeline)}`)
  }
  lines.push(...notesOf(set).map((note) => `  ${note}`))
  if (change) {
    lines.push(
      `  compared with what happened: ${count(change.newlyRefused)} newly refused, ` +
        `${count(change.newlyAllowed)} newly allowed,`,
      `    ${count(change.stillRefused)} refused as before, ${count(change.stillAllowed)} allowed as before` +
        (change.unknown > 0 ? `, ${count(change.unknown)} unknown` : ''),
    )
  }
  if (byRule.length > 1) {
    const rows = byRule.map(({ rule, refused: by }) => [rule, part(by, refused)])
    lines.push(...textTable([{ head: 'refused by rule' }, { head: 'requests', right: true }], rows))
  }
  if (hasRoutes(set)) lines.push(...routeLines(set))
  if (byTier.length > 0) lines.push(...tierLines(set))
  if (top.length > 0) {
    lines.push(
      ...textTable(
        [{ head: 'refused most' }, { head: 'refused', right: true }, { head: 'of', right: true }],
        top.map(({ key, refused: times, requests }) => [
          plain(key),
          part(times, requests),
          count(requests),
        ]),
      ),
    )
  }
  return lines
}

function routeLines({ byRoute }: RuleSetReport): string[] {
  return textTable(
    [
      { head: 'route' },
      { head: 'requests', right: true },
      { head: 'units', right: true },
      { head: 'refused', right: true },
      { head: 'would be refused', right: true },
    ],
    byRoute.map((each) => [
      routeName(each),
      count(each.requests),
      each.mode === 'open' ? '' : count(each.units),
      ...refusedOf(each),
    ]),
  )
}

function tierLines({ byTier }: RuleSetReport): string[] {
  return textTable(
    [
      { head: 'tier' },
      { head: 'requests', right: true },
      { head: 'refused', right: true },
      { head: 'clients', right: true },
      { head: 'clients refused', right: true },
    ],
    byTier.map(({ tier, requests, refused, clients, refusedClients }) => [
      plain(tier),
      count(requests),
      part(refused, requests),
      count(clients),
      part(refusedClients, clients),
    ]),
  )
}
