import { type Html, html } from './html.ts'
import type { RuleSetReport, Traffic, UsageReport } from './report.ts'
import { clockTime, count, counted, part, percent, plain, shareName, span } from './shown.ts'

/** The viewBox of the timeline: it is stretched to the page, with its labels outside. */
const WIDTH = 1_000
const HEIGHT = 100
const NARROWEST = 10
const TICKS = [0, 0.25, 0.5, 0.75, 1]
const DAY_MS = 86_400_000

/**
 * timelinePlot draws bars of requests, with the refusals of a rule set in front. It ends with the
 * log, so the first and the last bar may be narrower.
 */
export function timelinePlot({ timeline, startTime, endTime }: Traffic, set?: RuleSetReport): Html {
  const { binMs, requests } = timeline
  const refused = set?.timeline ?? []
  const most = Math.max(...requests, ...refused, 1)
  const firstMs = Date.parse(timeline.startTime)
  const [fromMs, toMs] = [Date.parse(startTime), Date.parse(endTime)]
  const place = (ms: number) => ((ms - fromMs) / (toMs - fromMs || 1)) * WIDTH

  const bins = requests.map((value, bin) => {
    const startMs = firstMs + bin * binMs
    // Keeps a bar at the very edge visible.
    const left = Math.max(Math.min(place(startMs), WIDTH - NARROWEST), 0)
    const right = Math.min(Math.max(place(startMs + binMs), left + NARROWEST), WIDTH)
    const bar = (height: number, kind: string) =>
      html`<rect class="${kind}" x="${round(left)}" y="${round(HEIGHT - height)}" width="${round((right - left) * 0.9)}" height="${round(height)}"/>`
    const no = refused[bin] ?? 0
    const told = set ? `, ${part(no, value)} refused` : ''
    return html`<g><title>${timeText(startMs)}: ${counted(value, 'request')}${told}</title>${bar((value / most) * HEIGHT, 'all')}${bar((no / most) * HEIGHT, 'no')}</g>`
  })
  const label = labelOf(toMs - fromMs)
  const labels = new Set(TICKS.map((tick) => label(fromMs + tick * (toMs - fromMs))))
  return html`<figure>
<figcaption>Requests in ${span(binMs)}${
    set
      ? html`: ${legend([
          ['all', 'all'],
          ['no', set.retries > 0 ? 'refused, with retries' : 'refused'],
        ])}`
      : html``
  }</figcaption>
<div class="timeline">
<div class="values"><span>${count(most)}</span><span>0</span></div>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="Requests over time">
${bins}</svg>
<div class="ticks">${[...labels].map((text) => html`<span>${text}</span>`)}</div>
</div>
</figure>`
}

/** How times below a plot are written: only the parts that differ. */
function labelOf(spanMs: number): (ms: number) => string {
  if (spanMs < 3_600_000) return (ms) => timeText(ms).slice(11)
  if (spanMs <= DAY_MS) return (ms) => timeText(ms).slice(11, 16)
  return (ms) => timeText(ms).slice(5, spanMs < 7 * DAY_MS ? 16 : 10)
}

function timeText(ms: number): string {
  return clockTime(new Date(ms).toISOString())
}

/** sharesPlot draws the share that each rule set refuses. */
export function sharesPlot(ruleSets: readonly RuleSetReport[]): Html {
  const shares = ruleSets.flatMap((set) => [set.refusedShare, set.refusedClientShare])
  const most = Math.max(...shares, 1e-9)
  const row = (share: number, kind: string) =>
    html`<div class="row">${bar(share / most, kind)}<span>${percent(share)}</span></div>`
  return html`<figure>
<figcaption>Refused: ${legend([
    ['no', 'share of requests'],
    ['some', 'share of clients'],
  ])}</figcaption>
${ruleSets.map((set) => html`<div class="name">${plain(set.name, 90)}</div>${row(set.refusedShare, 'no')}${row(set.refusedClientShare, 'some')}`)}
</figure>`
}

/** usagePlot draws the percentiles of one window on a logarithmic scale. */
export function usagePlot({ per, percentiles }: UsageReport): Html {
  const most = Math.log10(Math.max(...percentiles.map(({ use }) => use), 1) + 1)
  return html`<figure>
<figcaption>In ${per}, logarithmic scale</figcaption>
${percentiles.map(({ share, use }) => html`<div class="row use"><span>${shareName(share)}</span>${bar(Math.log10(use + 1) / most, 'all')}<span>${count(use)}/${per}</span></div>`)}
</figure>`
}

function bar(share: number, kind: string): Html {
  return html`<div><div class="bar ${kind}" style="width:${round(share * 100)}%"></div></div>`
}

function legend(kinds: readonly (readonly [kind: string, text: string])[]): Html {
  return html`${kinds.map(([kind, text]) => html`<span class="legend"><i class="${kind}"></i>${text}</span>`)}`
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
