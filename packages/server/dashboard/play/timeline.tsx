import { useEffect, useRef } from 'preact/hooks'
import { colour } from '../theme.tsx'
import type { Mark } from './game.ts'

/** TimelineProps: the marks up to now, and whether the windows have fixed edges. */
interface TimelineProps {
  readonly marks: readonly Mark[]
  readonly nowUs: number
  readonly perUs: number
  readonly hasEdges: boolean
  readonly label: string
}

/** The number of windows that a timeline shows. */
const WINDOWS = 1.5

/**
 * Timeline draws requests from left to right, with now at the right edge: an admitted request is a
 * tall bar, a refused one a small cross, and a delayed one has a line to the time when it leaves.
 */
export function Timeline(props: TimelineProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    if (canvas.current) draw(canvas.current, props)
  })
  return <canvas ref={canvas} class="timeline" role="img" aria-label={props.label} />
}

function draw(canvas: HTMLCanvasElement, { marks, nowUs, perUs, hasEdges }: TimelineProps) {
  const { clientWidth: width, clientHeight: height } = canvas
  const ratio = devicePixelRatio
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio)
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio)
  const context = canvas.getContext('2d')
  if (!context) return
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, width, height)
  const spanUs = WINDOWS * perUs
  const xOf = (us: number) => width - 4 - ((nowUs - us) / spanUs) * (width - 4)

  context.strokeStyle = colour('--edge')
  context.setLineDash([3, 3])
  context.beginPath()
  const edgeUs = hasEdges ? Math.floor(nowUs / perUs) * perUs : Number.NEGATIVE_INFINITY
  for (let us = edgeUs; us > nowUs - spanUs; us -= perUs) {
    const x = Math.round(xOf(us)) + 0.5
    context.moveTo(x, 0)
    context.lineTo(x, height)
  }
  context.stroke()
  context.setLineDash([])

  const allowed = colour('--allowed')
  const refused = colour('--refused')
  for (let i = marks.length - 1; i >= 0; i -= 1) {
    const mark = marks[i]
    if (mark.atUs < nowUs - spanUs) break
    const x = xOf(mark.atUs)
    if (mark.allowed) {
      context.fillStyle = allowed
      context.fillRect(x - 1.5, 4, 3, height - 8)
      if (mark.delayMs > 0) {
        const leaves = Math.min(xOf(mark.atUs + mark.delayMs * 1_000), width)
        context.globalAlpha = 0.5
        context.fillRect(x, height - 5, leaves - x, 1)
        context.globalAlpha = 1
      }
    } else {
      context.strokeStyle = refused
      context.lineWidth = 1.5
      const middle = height / 2
      context.beginPath()
      context.moveTo(x - 3, middle - 3)
      context.lineTo(x + 3, middle + 3)
      context.moveTo(x + 3, middle - 3)
      context.lineTo(x - 3, middle + 3)
      context.stroke()
      context.lineWidth = 1
    }
  }
}
