import { type Html, html, htmlTable } from './html.ts'
import { sharesPlot, timelinePlot, usagePlot } from './html-plots.ts'
import { clientsText, NOTHING_USED, notesOf, trafficNotes } from './notes.ts'
import type { Report, RuleSetReport } from './report.ts'
import { clockTime, count, counted, part, percent, plain, span } from './shown.ts'

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6675; --paper: #fff; --line: #dde2e8;
  --all: #9db7d5; --no: #c8362e; --some: #d98c1f }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa7b6; --paper: #12171e;
  --line: #2b343f; --all: #46698f; --no: #f0665c; --some: #e0a34a } }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem } p, li { color: var(--soft) }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; padding: 0; list-style: none }
.cards li { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .9rem }
.cards b { display: block; color: var(--ink); font-size: 1.2rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; margin: .4rem 0 }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .9rem .2rem 0; text-align: left }
th { color: var(--soft); font-weight: 600 }
.right { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
svg { display: block; width: 100%; height: auto; margin: .4rem 0 } svg text { fill: var(--soft); font-size: 11px }
svg .name { fill: var(--ink) } .all { fill: var(--all) } .no { fill: var(--no) }
.some { fill: var(--some) } .axis { stroke: var(--soft) } .grid { stroke: var(--line) }
`

/**
 * htmlReport is a report as one page that opens from a disk: no script, nothing from elsewhere, light
 * or dark as the reader likes it.
 */
export function htmlReport(report: Report): string {
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
<ul class="cards">
<li><b>${counted(traffic.requests, 'request')}</b> by ${clientsText(traffic)}</li>
<li><b>${span(traffic.spanMs)}</b> from ${clockTime(traffic.startTime)} UTC</li>
${ruleSets.map((set) => html`<li><b>${percent(set.refusedShare)}</b> refused by ${plain(set.name)}</li>`)}
</ul>
${trafficNotes(traffic).map((note) => html`<p>${note}</p>`)}
${timelinePlot(traffic.timeline, [])}
${comparisonHtml(report)}
${ruleSets.map((set) => ruleSetHtml(set, report))}
<h2>What clients use</h2>
<p>The most that a client uses in one window of the clock: half of the clients use at most p50.</p>
${usage.map((window) => html`<h3>In ${window.per}</h3>${usagePlot(window)}`)}
${suggestionsHtml(report)}
</body>
</html>
`.html
}

function sourceHtml({ source, traffic }: Report): Html {
  if (source.kind === 'scenario') {
    const { scenario, clients, ratePerSecond, forMs, seed } = source
    return html`<p>Scenario ${scenario}: ${counted(clients, 'client')}, ${ratePerSecond} requests a second for ${span(forMs)}, seed ${seed}</p>`
  }
  const { formats, unreadable, lines, problems, late, reordered } = source
  return html`${formats.map((format) => html`<p>${plain(format, 200)}</p>`)}
<p>${counted(lines, 'line')}; ${part(unreadable, lines)} could not be read, ${count(reordered)} were put in order, ${part(late, traffic.requests)} came too late for that.</p>
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
  const { byRule, byTier, top, change, refused } = set
  const changed = change && [
    ['what happened', right('would be allowed'), right('would be refused')],
    ['allowed', right(count(change.stillAllowed)), right(count(change.newlyRefused))],
    ['refused', right(count(change.newlyAllowed)), right(count(change.stillRefused))],
  ]
  return html`<h2>${plain(set.name, 200)}</h2>
${timelinePlot(traffic.timeline, set.timeline)}
${notesOf(set).map((note) => html`<p>${note}</p>`)}
${changed ? htmlTable(changed) : html``}
${change?.unknown ? html`<p>Requests of which the log does not say what happened: ${count(change.unknown)}</p>` : html``}
${htmlTable([
  ['refused by rule', right('requests')],
  ...byRule.map(({ rule, refused: by }) => [rule, right(part(by, refused))]),
])}
${byTier.length === 0 ? html`` : tierTable(set)}
${htmlTable([
  ['refused most', right('refused'), right('of')],
  ...top.map(({ key, refused: times, requests }) => [
    plain(key),
    right(part(times, requests)),
    right(count(requests)),
  ]),
])}`
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
  if (suggestions.length === 0) return html`<h2>Suggested limits</h2><p>${NOTHING_USED}</p>`
  return html`<h2>Suggested limits</h2>
<p>A quarter above what most clients use, rounded up; what is over a limit is counted in windows of the clock.</p>
${htmlTable([
  ['rule', 'taken from', right('clients over'), right('units over')],
  ...suggestions.map(({ rule, share, use, clientsOver, unitsOver }) => [
    rule,
    `${percent(share)} of clients: at most ${count(use)}`,
    right(part(clientsOver, traffic.clients)),
    right(part(unitsOver, traffic.units)),
  ]),
])}`
}

function right(text: string): { readonly right: string } {
  return { right: text }
}
