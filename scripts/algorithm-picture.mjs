// @ts-check
import { createLimiter } from 'sluice'
import { manualClock } from 'sluice/testing'

/** All pictures show the same traffic under a limit of 10 in 10 seconds. */
export const LIMIT = 10
export const PER_MS = 10_000
const END_MS = 30_000

/**
 * Twelve requests just before the tenth second and twelve just after it, like a client that exploits
 * the edge of a window; then two per second.
 */
const traffic = [
  ...Array.from({ length: 12 }, (_, i) => 8_000 + i * 160),
  ...Array.from({ length: 12 }, (_, i) => 10_050 + i * 160),
  ...Array.from({ length: 20 }, (_, i) => 18_000 + i * 500),
]

const WIDTH = 720
const LEFT = 60
const RIGHT = 12
const MARKS = { top: 34, bottom: 64 }
const PLOT = { top: 92, bottom: 232 }
const MOST = 2 * LIMIT

const x = (/** @type {number} */ ms) => round(LEFT + ((WIDTH - LEFT - RIGHT) * ms) / END_MS)
const y = (/** @type {number} */ units) =>
  round(PLOT.bottom - ((PLOT.bottom - PLOT.top) * Math.min(units, MOST)) / MOST)
const round = (/** @type {number} */ value) => Math.round(value * 10) / 10

/**
 * play checks each request of the traffic with a limiter.
 * @param {import('sluice').Rule} rule
 */
export function play(rule) {
  const clock = manualClock()
  const limiter = createLimiter(rule, { clock })
  /** @type {{ atMs: number, allowed: boolean, goesMs: number }[]} */
  const requests = []
  /** @type {[number, number][]} */
  const remaining = []
  let nowMs = 0
  for (let atMs = 0; atMs <= END_MS; atMs += 10) {
    clock.advance(atMs - nowMs)
    nowMs = atMs
    if (traffic.includes(atMs)) {
      const { allowed, delayMs } = limiter.check('client')
      requests.push({ atMs, allowed, goesMs: atMs + delayMs })
    }
    if (atMs % 50 === 0) remaining.push([atMs, limiter.peek('client').remaining])
  }
  return { requests, remaining }
}

/**
 * algorithmPicture draws an SVG of a rule's decisions on the traffic: which requests pass, how many
 * units remain, and how many went ahead within the last `per`.
 * @param {string} title
 * @param {import('sluice').Rule} rule
 */
export function algorithmPicture(title, rule) {
  const { requests, remaining } = play(rule)
  const passed = requests.filter(({ allowed }) => allowed)
  /** @type {[number, number][]} */
  const recent = []
  for (let atMs = 0; atMs <= END_MS; atMs += 50) {
    const isRecent = (/** @type {number} */ ms) => ms <= atMs && ms > atMs - PER_MS
    recent.push([atMs, passed.filter(({ goesMs }) => isRecent(goesMs)).length])
  }
  const most = Math.max(...recent.map(([, units]) => units))
  const said = `${passed.length} of ${requests.length} pass; at most ${most} go ahead within ${PER_MS / 1_000} s`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} 280" role="img" aria-label="${title}: ${said}">
<style>
text { font: 12px system-ui, sans-serif; fill: #57606a }
.title { font-weight: 600; font-size: 14px; fill: #1f2328 }
.grid { stroke: #d0d7de; stroke-width: 1 }
.limit { stroke: #57606a; stroke-dasharray: 4 3 }
.pass { stroke: #1a7f37; stroke-width: 2 }
.refuse { stroke: #cf222e; stroke-width: 2; fill: none }
.recent { fill: #0969da33; stroke: #0969da; stroke-width: 1.5 }
.remaining { fill: none; stroke: #9a6700; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 } .title { fill: #f0f6fc } .grid { stroke: #3d444d } .limit { stroke: #9198a1 }
.pass { stroke: #3fb950 } .refuse { stroke: #f85149 } .recent { fill: #4493f833; stroke: #4493f8 }
.remaining { stroke: #d29922 }
}
</style>
<text x="${LEFT}" y="18" class="title">${title}</text>
<text x="${WIDTH - RIGHT}" y="18" text-anchor="end">${said}</text>
${axes()}
${requests.map(mark).join('\n')}
<path class="recent" d="M${x(0)} ${y(0)}${steps(recent)}L${x(END_MS)} ${y(0)}Z"/>
<path class="remaining" d="M${x(0)} ${y(remaining[0][1])}${steps(remaining)}"/>
<path class="grid limit" d="M${LEFT} ${y(LIMIT)}H${WIDTH - RIGHT}"/>
${key()}
</svg>
`
}

/** Draws an admitted request as a line and a refused one as a cross, since colours are not enough. */
function mark(/** @type {{ atMs: number, allowed: boolean }} */ { atMs, allowed }) {
  const [at, middle] = [x(atMs), (MARKS.top + MARKS.bottom) / 2]
  if (allowed) return `<path class="pass" d="M${at} ${MARKS.top}V${MARKS.bottom}"/>`
  return `<path class="refuse" d="M${at - 3} ${middle - 3}l6 6m0 -6l-6 6"/>`
}

/** Draws a step line. */
function steps(/** @type {readonly (readonly [number, number])[]} */ values) {
  let text = ''
  let last = Number.NaN
  for (const [ms, units] of values) {
    if (units !== last) text += `H${x(ms)}V${y(units)}`
    last = units
  }
  return `${text}H${x(END_MS)}`
}

function axes() {
  const seconds = Array.from({ length: 7 }, (_, i) => i * 5_000).map(
    (ms) =>
      `<path class="grid" d="M${x(ms)} ${MARKS.top}V${PLOT.bottom}"/>` +
      `<text x="${x(ms)}" y="${PLOT.bottom + 16}" text-anchor="middle">${ms / 1_000} s</text>`,
  )
  const units = [0, LIMIT, MOST].map(
    (value) => `<text x="${LEFT - 8}" y="${y(value) + 4}" text-anchor="end">${value}</text>`,
  )
  return [...seconds, ...units].join('\n')
}

function key() {
  const at = 270
  return `<path class="pass" d="M${LEFT} ${at - 9}v10"/><text x="${LEFT + 8}" y="${at}">admitted</text>
<path class="refuse" d="M${LEFT + 62} ${at - 7}l6 6m0 -6l-6 6"/><text x="${LEFT + 74}" y="${at}">refused</text>
<path class="remaining" d="M${LEFT + 136} ${at - 4}h20"/><text x="${LEFT + 162}" y="${at}">remaining</text>
<path class="recent" d="M${LEFT + 238} ${at - 9}h20v10h-20z"/><text x="${LEFT + 264}" y="${at}">went ahead in the last 10 s</text>
<path class="grid limit" d="M${LEFT + 436} ${at - 4}h20"/><text x="${LEFT + 462}" y="${at}">limit</text>`
}
