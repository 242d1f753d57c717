import 'uplot/dist/uPlot.min.css'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { colour } from '../theme.tsx'
import { clockOf } from './words.ts'

/** Line is a line of a chart; `colour` is the name of a CSS variable. */
export interface Line {
  readonly label: string
  readonly colour: string
  /** Dashed, so that lines differ in more than colour. */
  readonly isDashed?: boolean
  readonly values: readonly (number | null)[]
}

/** ChartProps: the lines share their times, in seconds since 1970. */
interface ChartProps {
  readonly label: string
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  format(value: number): string
}

const HEIGHT = 200
const SPAN_SECONDS = 300
const LABEL_WIDTH = 65

/** Chart draws lines over the last five minutes. Their number and names never change. */
export function Chart({ label, times, lines, format }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const latest = useRef(lines)
  latest.current = lines

  useEffect(() => {
    const box = place.current
    if (!box) return
    const chart = new uPlot(
      optionsOf(latest.current, format, box.clientWidth),
      [[], ...latest.current.map(() => [])],
      box,
    )
    plot.current = chart
    // Not the box, since its legend is readable text.
    chart.ctx.canvas.setAttribute('role', 'img')
    chart.ctx.canvas.setAttribute('aria-label', label)
    const sizes = new ResizeObserver(() =>
      chart.setSize({ width: box.clientWidth, height: HEIGHT }),
    )
    sizes.observe(box)
    const themes = new MutationObserver(() => chart.redraw())
    themes.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const redraw = () => chart.redraw()
    scheme.addEventListener('change', redraw)
    return () => {
      scheme.removeEventListener('change', redraw)
      sizes.disconnect()
      themes.disconnect()
      chart.destroy()
    }
  }, [])

  useEffect(() => {
    const chart = plot.current
    const data = [[...times], ...lines.map(({ values }) => [...values])]
    chart?.setData(data as uPlot.AlignedData)
    // Without a pointer on the chart, the legend shows the latest values.
    const isPointed = (chart?.cursor.left ?? -1) >= 0
    if (!isPointed && times.length > 0) chart?.setLegend({ idx: times.length - 1 })
  })
  return <div ref={place} class="chart" />
}

function optionsOf(
  lines: readonly Line[],
  format: (value: number) => string,
  width: number,
): uPlot.Options {
  const axis = {
    stroke: () => colour('--muted'),
    grid: { stroke: () => colour('--line'), width: 1 },
    ticks: { stroke: () => colour('--line'), width: 1 },
  }
  return {
    width,
    height: HEIGHT,
    // Half of the last time label is beyond the chart.
    padding: [null, LABEL_WIDTH / 2, null, null],
    cursor: { drag: { x: false, y: false } },
    // CSS variables: uPlot sets these colours once, and the theme may change.
    legend: { markers: { stroke: (_plot, series) => `var(${lines[series - 1]?.colour})` } },
    scales: {
      x: { range: (_plot, _least, most) => [(most ?? Date.now() / 1_000) - SPAN_SECONDS, most] },
      y: { range: (_plot, _least, most) => [0, Math.max(most ?? 0, Number.MIN_VALUE) * 1.1 || 1] },
    },
    axes: [
      {
        ...axis,
        space: LABEL_WIDTH,
        incrs: [30, 60, 120],
        values: (_plot, values) => values.map((at) => clockOf(at * 1_000)),
      },
      { ...axis, size: 62, values: (_plot, values) => values.map(format) },
    ],
    series: [
      { label: 'at', value: (_plot, at) => (typeof at === 'number' ? clockOf(at * 1_000) : '–') },
      ...lines.map(({ label, colour: name, isDashed }) => ({
        label,
        stroke: () => colour(name),
        width: 1.75,
        paths: runs,
        ...(isDashed ? { dash: [6, 3] } : {}),
        // A ring around a dot: equal values of both lines stay visible.
        points: {
          show: false,
          filter: isolated,
          size: isDashed ? 10 : 5,
          fill: () => (isDashed ? 'transparent' : colour(name)),
        },
        // Undefined when there are fewer values than before, after a restart of the server.
        value: (_plot: uPlot, value: number | null | undefined) =>
          typeof value === 'number' ? format(value) : '–',
      })),
    ],
  }
}

/**
 * Lines that stop at gaps. uPlot draws through gaps and clips, which leaves streaks of steep lines.
 */
function runs(plot: uPlot, series: number, from: number, to: number): uPlot.Series.Paths {
  const stroke = new Path2D()
  const [times, values = []] = [plot.data[0], plot.data[series]]
  for (let i = from, isDrawing = false; i <= to; i += 1) {
    const value = values[i]
    if (typeof value === 'number') {
      const x = plot.valToPos(times[i] as number, 'x', true)
      const y = plot.valToPos(value, 'y', true)
      if (isDrawing) stroke.lineTo(x, y)
      else stroke.moveTo(x, y)
    }
    isDrawing = typeof value === 'number'
  }
  return { stroke }
}

/** Values without neighbours, which are drawn as points. */
function isolated(plot: uPlot, series: number): number[] {
  const values = plot.data[series] ?? []
  const has = (i: number) => typeof values[i] === 'number'
  return [...values.keys()].filter((i) => has(i) && !has(i - 1) && !has(i + 1))
}
