import { type Html, html, htmlTable } from './html.ts'
import { sharesPlot, timelinePlot, usagePlot } from './html-plots.ts'
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
import { clockTime, count, counted, part, percent, plain, span } from './shown.ts'

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6675; --paper: #fff; --line: #dde2e8;
  --all: #9db7d5; --no: #c8362e; --some: #d98c1f }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa7b6; --paper: #12171e;
  --line: #2b343f; --all: #46698f; --no: #f0665c; --some: #e0a34a } }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; overflow-wrap: anywhere }
p, li, figcaption, footer { color: var(--soft); overflow-wrap: anywhere }
.scroll { overflow-x: auto } table { border-collapse: collapse; margin: .4rem 0 }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .9rem .2rem 0; text-align: left;
  white-space: nowrap }
th { color: var(--soft); font-weight: 600 }
.right { text-align: right; font-variant-numeric: tabular-nums }
figure { margin: 1rem 0 } figcaption { margin-bottom: .3rem }
.all { fill: var(--all); background: var(--all) } .no { fill: var(--no); background: var(--no) }
.some { fill: var(--some); background: var(--some) }
.legend { margin-right: .9rem; white-space: nowrap }
.legend i { display: inline-block; width: .7rem; height: .7rem; margin-right: .3rem }
.timeline { display: grid; grid-template-columns: max-content 1fr; column-gap: .5rem }
.timeline, .row { color: var(--soft); font-size: .8rem }
.timeline svg { width: 100%; height: 9rem; border: solid var(--line); border-width: 1px 0 }
.values, .ticks { display: flex; justify-content: space-between }
.values { flex-direction: column; text-align: right } .ticks { grid-column: 2 }
.row { display: grid; grid-template-columns: 1fr 4rem; column-gap: .5rem; align-items: center }
.row.use { grid-template-columns: 3rem 1fr 6rem } .bar { height: .7rem } .name { overflow-wrap: anywhere }
footer { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: .6rem; font-size: .8rem }
@media (max-width: 30rem) { body { padding: 1rem } .ticks :nth-child(even) { display: none } }
`

/** Made says how and when a page was made. */
export interface Made {
  readonly command: string
  readonly version: string
  /** ISO 8601. */
  readonly time: string
}

/**
 * htmlReport is a report as one page that works as a local file: no script, nothing from other
 * origins, light or dark by the reader's preference.
 */
export function htmlReport(report: Report, { command, version, time }: Made): string {
  const { traffic, usage, ruleSets } = report
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Sluice: what limits would have done</title>
<style>${{ html: STYLE }}</style>
</head>
<body>
<h1>What limits would have done</h1>
${sourceHtml(report)}
<p>${counted(traffic.requests, 'request')} by ${clientsText(traffic)}, ${clockTime(traffic.startTime)} to ${clockTime(traffic.endTime)} UTC, ${span(traffic.spanMs)}</p>
${trafficNotes(traffic).map((note) => html`<p>${note}</p>`)}
<h2>Traffic</h2>
${timelinePlot(traffic)}
${comparisonHtml(report)}
${ruleSets.map((set) => ruleSetHtml(set, report))}
<h2>What clients use</h2>
<p>The largest use of each client in one window of the clock: half of the clients use at most p50.</p>
${usage.map(usagePlot)}
${suggestionsHtml(report)}
<footer>Made by <code>${plain(command, 1_000)}</code>, version ${version}, ${clockTime(time)} UTC</footer>
</body>
</html>
`.html
}

function sourceHtml({ source, traffic }: Report): Html {
  if (source.kind === 'scenario') {
    const { scenario, clients, ratePerSecond, forMs, seed } = source
    return html`<p>Scenario ${scenario}: ${counted(clients, 'client')}, ${ratePerSecond} requests per second for ${span(forMs)}, seed ${seed}</p>`
  }
  const { formats, unreadable, lines, problems, late, reordered, wholeSeconds } = source
  return html`${formats.map((format) => html`<p>${plain(format, 200)}</p>`)}
<p>${counted(lines, 'line')}; ${part(unreadable, lines)} unreadable, ${count(reordered)} reordered by time, ${part(late, traffic.requests)} too late to reorder.</p>
${wholeSeconds ? html`<p>${WHOLE_SECONDS}</p>` : html``}
<ul>${problems.map(({ file, line, reason }) => html`<li>${plain(file, 200)}:${line} ${plain(reason, 200)}</li>`)}</ul>`
}

function comparisonHtml({ ruleSets }: Report): Html {
  if (ruleSets.length === 0) return html``
  return html`<h2>Rule sets</h2>
${sharesPlot(ruleSets)}
${htmlTable([
  ['rule set', right('requests'), right('refused'), right('clients refused')],
  ...ruleSets.map((set) => [
    plain(set.name),
    right(count(set.requests)),
    right(part(set.refused, set.requests)),
    right(part(set.refusedClients, set.clients)),
  ]),
])}`
}

function ruleSetHtml(set: RuleSetReport, { traffic }: Report): Html {
  const { byRule, byTier, top, change } = set
  const changed = change && [
    ['what happened', right('would be allowed'), right('would be refused')],
    ['allowed', right(count(change.stillAllowed)), right(count(change.newlyRefused))],
    ['refused', right(count(change.newlyAllowed)), right(count(change.stillRefused))],
  ]
  return html`<h2>${plain(set.name, 200)}</h2>
${timelinePlot(traffic, set)}
${notesOf(set).map((note) => html`<p>${note}</p>`)}
${changed ? htmlTable(changed) : html``}
${change?.unknown ? html`<p>Requests without an outcome in the log: ${count(change.unknown)}</p>` : html``}
${byRule.length > 1 ? ruleTable(set) : html``}
${hasRoutes(set) ? routeTable(set) : html``}
${byTier.length > 0 ? tierTable(set) : html``}
${top.length > 0 ? topTable(set) : html``}`
}

function ruleTable({ byRule, refused }: RuleSetReport): Html {
  return htmlTable([
    ['refused by rule', right('requests')],
    ...byRule.map(({ rule, refused: by }) => [rule, right(part(by, refused))]),
  ])
}

function topTable({ top }: RuleSetReport): Html {
  return htmlTable([
    ['refused most', right('refused'), right('of')],
    ...top.map(({ key, refused, requests }) => [
      plain(key),
      right(part(refused, requests)),
      right(count(requests)),
    ]),
  ])
}

function routeTable({ byRoute }: RuleSetReport): Html {
  return htmlTable([
    ['route', right('requests'), right('units'), right('refused'), right('would be refused')],
    ...byRoute.map((each) => [
      routeName(each),
      right(count(each.requests)),
      right(each.mode === 'open' ? '' : count(each.units)),
      ...refusedOf(each).map(right),
    ]),
  ])
}

function tierTable({ byTier }: RuleSetReport): Html {
  return htmlTable([
    ['tier', right('requests'), right('refused'), right('clients'), right('clients refused')],
    ...byTier.map(({ tier, requests, refused, clients, refusedClients }) => [
      plain(tier),
      right(count(requests)),
      right(part(refused, requests)),
      right(count(clients)),
      right(part(refusedClients, clients)),
    ]),
  ])
}

function suggestionsHtml({ suggestions, traffic }: Report): Html {
  if (suggestions.length === 0)
    return html`<h2>Suggested limits</h2><p>${noSuggestion(traffic)}</p>`
  return html`<h2>Suggested limits</h2>
<p>A quarter above what most clients use, rounded up; use over a limit is counted in windows of the clock. The suggested burst is three times what they use in a second.</p>
${htmlTable([
  ['rule', right('burst'), 'taken from', right('clients over'), right('units over')],
  ...suggestions.map(({ rule, burst, share, use, clientsOver, unitsOver }) => [
    rule,
    right(burst === undefined ? '' : String(burst)),
    `${percent(share)} of clients: at most ${count(use)}`,
    right(part(clientsOver, traffic.clients)),
    right(part(unitsOver, traffic.units)),
  ]),
])}`
}

function right(text: string): { readonly right: string } {
  return { right: text }
}
