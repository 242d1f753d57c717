import { type Html, html } from './html.ts'
import type { Report, UsageReport } from './report.ts'
import { clockTime, count, counted, part, percent, plain, shareName } from './shown.ts'

const WIDTH = 720
const HEIGHT = 140
const LEFT = 56
const FOOT = 20

/** timelinePlot draws bars of requests, with those that were refused in front. */
export function timelinePlot(
  { startTime, binMs, requests }: Report['traffic']['timeline'],
  refused: readonly number[],
): Html {
  const most = Math.max(...requests, ...refused, 1)
  const each = (WIDTH - LEFT) / Math.max(requests.length, 10)
  const startMs = Date.parse(startTime)
  const timeOf = (bin: number) => {
    const ms = startMs + bin * binMs
    return ms <= 8.64e15 ? clockTime(new Date(ms).toISOString()) : ''
  }
  const bar = (bin: number, value: number, kind: string) => {
    const height = (value / most) * HEIGHT
    return html`<rect class="${kind}" x="${round(LEFT + bin * each)}" y="${round(HEIGHT - height)}" width="${round(each * 0.9)}" height="${round(height)}"/>`
  }
  const bins = requests.map((value, bin) => {
    const no = refused[bin] ?? 0
    const told = refused.length === 0 ? '' : `, ${part(no, value)} refused`
    return html`<g><title>${timeOf(bin)}: ${counted(value, 'request')}${told}</title>${bar(bin, value, 'all')}${bar(bin, no, 'no')}</g>`
  })
  return html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT + FOOT}" role="img" aria-label="requests over time">
<line class="axis" x1="${LEFT}" y1="${HEIGHT}" x2="${WIDTH}" y2="${HEIGHT}"/>
<line class="grid" x1="${LEFT}" y1="0.5" x2="${WIDTH}" y2="0.5"/>
<text x="${LEFT - 6}" y="10" text-anchor="end">${count(most)}</text>
<text x="${LEFT - 6}" y="${HEIGHT}" text-anchor="end">0</text>
${bins}
<text x="${LEFT}" y="${HEIGHT + 15}">${timeOf(0)}</text>
<text x="${WIDTH}" y="${HEIGHT + 15}" text-anchor="end">${timeOf(requests.length)} UTC</text>
</svg>`
}

/** sharesPlot draws the share that each rule set refuses. */
export function sharesPlot(ruleSets: Report['ruleSets']): Html {
  const row = 40
  const most = Math.max(
    ...ruleSets.flatMap((set) => [set.refusedShare, set.refusedClientShare]),
    1e-9,
  )
  const room = WIDTH - 120
  const bar = (y: number, share: number, kind: string, what: string) =>
    html`<rect class="${kind}" x="0" y="${y}" width="${round((share / most) * room)}" height="8"/>
<text x="${round((share / most) * room + 6)}" y="${y + 8}">${percent(share)} ${what}</text>`
  const rows = ruleSets.map(
    (set, i) => html`<g><text class="name" x="0" y="${i * row + 11}">${plain(set.name, 90)}</text>
${bar(i * row + 16, set.refusedShare, 'no', 'of requests')}
${bar(i * row + 27, set.refusedClientShare, 'some', 'of clients')}</g>`,
  )
  const height = ruleSets.length * row
  return html`<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="shares refused">${rows}</svg>`
}

/** usagePlot draws the percentiles of one window, on a scale of powers of ten. */
export function usagePlot({ per, percentiles }: UsageReport): Html {
  const row = 18
  const most = Math.log10(Math.max(...percentiles.map(({ use }) => use), 1) + 1)
  const room = WIDTH - LEFT - 80
  const rows = percentiles.map(({ share, use }, i) => {
    const width = round((Math.log10(use + 1) / most) * room)
    return html`<g><text x="${LEFT - 6}" y="${i * row + 12}" text-anchor="end">${shareName(share)}</text>
<rect class="all" x="${LEFT}" y="${i * row + 3}" width="${width}" height="11"/>
<text x="${LEFT + width + 6}" y="${i * row + 12}">${count(use)}/${per}</text></g>`
  })
  const height = percentiles.length * row
  return html`<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="use in ${per}">${rows}</svg>`
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
