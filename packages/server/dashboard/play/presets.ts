import type { Planned } from './game.ts'

/** Preset is a pattern of traffic that shows differences between the algorithms. */
export interface Preset {
  readonly name: string
  readonly title: string
  readonly shows: string
  /** The start within a window, in units of `per`. */
  readonly startsAt: number
  /** The duration, in units of `per`. */
  readonly lasts: number
  /** The times of the requests, in units of `per` after the start of the first window. */
  times(limit: number): number[]
}

/** More could not be distinguished, and would keep the page busy. */
const MOST_REQUESTS = 1_000

const spread = (count: number, from: number, to: number): number[] => {
  const length = Math.min(Math.floor(count), MOST_REQUESTS)
  return Array.from({ length }, (_, i) => from + ((to - from) * i) / length)
}

/** presets are the selectable patterns. */
export const presets: readonly Preset[] = [
  {
    name: 'window-edge',
    title: 'Window edge',
    shows: 'The full limit at the end of a window, and again at the start of the next.',
    startsAt: 0.7,
    lasts: 0.7,
    times: (limit) => [...spread(limit, 0.8, 1), ...spread(limit, 1, 1.2)],
  },
  {
    name: 'burst',
    title: 'Burst',
    shows: 'Twice the limit at once, then half the rate.',
    startsAt: 0.1,
    lasts: 1.4,
    times: (limit) => [...spread(2 * limit, 0.2, 0.22), ...spread(limit / 2, 0.4, 1.4)],
  },
  {
    name: 'overload',
    title: 'Steady overload',
    shows: 'One and a half times the rate, evenly, for two windows.',
    startsAt: 0,
    lasts: 2,
    times: (limit) => spread(3 * limit, 0, 2),
  },
]

/** presetOf finds a preset by its name. */
export function presetOf(name: string): Preset | undefined {
  return presets.find((preset) => preset.name === name)
}

/** requestsOf returns a preset's requests for a rule, if its first window starts at `windowUs`. */
export function requestsOf(
  preset: Preset,
  { limit, perUs }: { limit: number; perUs: number },
  { windowUs, client, cost }: { windowUs: number; client: string; cost: number },
): Planned[] {
  const times = preset.times(Math.max(1, Math.floor(limit / Math.max(1, cost))))
  return times.map((part) => ({ atUs: Math.round(windowUs + part * perUs), client, cost }))
}
