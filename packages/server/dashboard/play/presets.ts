import type { Planned } from './game.ts'

/** Preset is traffic worth looking at. */
export interface Preset {
  readonly name: string
  readonly title: string
  readonly shows: string
  /** Where to start within a window, as a part of `per`. */
  readonly startsAt: number
  /** When to stop, as a part of `per` after the start. */
  readonly lasts: number
  /** The requests' times, as parts of `per` after the start of the first window. */
  times(limit: number): number[]
}

/** More could not be told apart, and would keep the page busy. */
const MOST_REQUESTS = 1_000

const spread = (count: number, from: number, to: number): number[] => {
  const length = Math.min(Math.floor(count), MOST_REQUESTS)
  return Array.from({ length }, (_, i) => from + ((to - from) * i) / length)
}

/** presets by what they show. */
export const presets: readonly Preset[] = [
  {
    name: 'window-edge',
    title: 'Window edge',
    shows: 'The limit at the end of one window, and again at the start of the next.',
    startsAt: 0.7,
    lasts: 0.7,
    times: (limit) => [...spread(limit, 0.8, 1), ...spread(limit, 1, 1.2)],
  },
  {
    name: 'burst',
    title: 'Rush',
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

/** presetOf finds one by its name. */
export function presetOf(name: string): Preset | undefined {
  return presets.find((preset) => preset.name === name)
}

/** requestsOf are a preset's requests for a rule, when its first window starts at `windowUs`. */
export function requestsOf(
  preset: Preset,
  { limit, perUs }: { limit: number; perUs: number },
  { windowUs, client, cost }: { windowUs: number; client: string; cost: number },
): Planned[] {
  const times = preset.times(Math.max(1, Math.floor(limit / Math.max(1, cost))))
  return times.map((part) => ({ atUs: Math.round(windowUs + part * perUs), client, cost }))
}
