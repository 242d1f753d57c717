import { useEffect, useRef, useState } from 'preact/hooks'
import type { Choices } from './choices.ts'
import { createGame, type Game } from './game.ts'
import { type Preset, presetOf, requestsOf } from './presets.ts'

/** Played is a running game with its controls. */
export interface Played {
  readonly game: Game
  readonly isPaused: boolean
  /** Sends a request of the selected client; resumes a paused game. */
  request(): void
  /** Starts again with all clients unused, and plays a preset. */
  play(preset: Preset): void
  /** Starts again with all clients unused. */
  restart(): void
  togglePause(): void
}

/** The longest step of time: a page that was hidden does not catch up. */
const LONGEST_STEP_MS = 250

/** Presets play as fast as if `per` had this length. */
const PRESET_PER_US = 10_000_000

interface Run {
  readonly game: Game
  isPaused: boolean
  speed: number
  stopUs: number
  nextRateUs: number
}

/** useGame advances a game with each frame. New parameters start a new game. */
export function useGame(choices: Choices): Played {
  const { limit, per, burst, queue, align } = choices
  const figures = [limit, per, burst, queue, align].join('\n')
  const run = useRef<Run | undefined>(undefined)
  const made = useRef('')
  const latest = useRef(choices)
  const [, redraw] = useState(0)
  latest.current = choices

  if (!run.current || made.current !== figures) {
    const preset = run.current ? undefined : presetOf(choices.preset)
    made.current = figures
    run.current = preset ? presetRun(choices, preset) : freshRun(choices)
  }

  useEffect(() => {
    let lastMs = performance.now()
    let frame = requestAnimationFrame(function step(nowMs) {
      const stepMs = Math.max(0, Math.min(nowMs - lastMs, LONGEST_STEP_MS))
      lastMs = nowMs
      if (run.current && !run.current.isPaused) {
        goOn(run.current, stepMs, latest.current)
        redraw((times) => times + 1)
      }
      frame = requestAnimationFrame(step)
    })
    return () => cancelAnimationFrame(frame)
  }, [])

  const start = (next: Run) => {
    run.current = next
    redraw((times) => times + 1)
  }
  const { game, isPaused } = run.current
  return {
    game,
    isPaused,
    request() {
      const { client, cost } = latest.current
      const current = run.current as Run
      if (current.isPaused) resume(current)
      current.game.request(client, Number(cost))
      redraw((times) => times + 1)
    },
    play: (preset) => start(presetRun(latest.current, preset)),
    restart: () => start(freshRun(latest.current)),
    togglePause() {
      const current = run.current as Run
      if (current.isPaused) resume(current)
      else current.isPaused = true
      redraw((times) => times + 1)
    },
  }
}

function resume(run: Run): void {
  run.isPaused = false
  run.stopUs = Number.POSITIVE_INFINITY
  run.speed = 0
}

/** Starts at the real time, so that windows begin as those of a real limiter. */
function freshRun(choices: Choices): Run {
  const nowUs = Date.now() * 1_000
  const stopUs = Number.POSITIVE_INFINITY
  return { game: createGame(choices, nowUs), isPaused: false, speed: 0, stopUs, nextRateUs: nowUs }
}

function presetRun(choices: Choices, preset: Preset): Run {
  const rule = createGame(choices, 0).rows.find((row) => row.rule)?.rule
  if (!rule) return freshRun(choices)
  const { perUs } = rule
  const windowUs = Math.floor((Date.now() * 1_000) / perUs) * perUs
  const startUs = windowUs + Math.round(preset.startsAt * perUs)
  const game = createGame(choices, startUs)
  const by = { windowUs, client: choices.client, cost: Number(choices.cost) }
  game.plan(requestsOf(preset, rule, by))
  const stopUs = startUs + Math.round(preset.lasts * perUs)
  return { game, isPaused: false, speed: perUs / PRESET_PER_US, stopUs, nextRateUs: stopUs }
}

/** Sends the requests of the rate at their exact times, whatever the frame rate. */
function goOn(run: Run, stepMs: number, { rate, speed, client, cost }: Choices): void {
  const { game } = run
  const faster = Math.max(Number(speed), run.speed)
  const toUs = Math.min(Math.round(game.nowUs() + stepMs * 1_000 * faster), run.stopUs)
  const gapUs = 1_000_000 / Number(rate)
  run.nextRateUs = Math.max(run.nextRateUs, game.nowUs())
  while (Number(rate) > 0 && run.nextRateUs <= toUs) {
    game.advance(Math.round(run.nextRateUs))
    game.request(client, Number(cost))
    run.nextRateUs += gapUs
  }
  game.advance(toUs)
  if (toUs >= run.stopUs) run.isPaused = true
}
