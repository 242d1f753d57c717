import { useCallback, useEffect, useState } from 'preact/hooks'
import type { Decision } from 'sluice'
import type { RouteForecast } from '../../src/api/routes-for.ts'
import type { ShownRule } from '../../src/shown-rule.ts'
import { ask } from './api.ts'

/** KeyState is the response of `GET /v1/keys/:key`. */
export interface KeyState {
  readonly key: string
  readonly tier: string
  /** The rules of its tier, or its own. */
  readonly rules: readonly ShownRule[]
  /** What operators assigned at run time. */
  readonly given: { readonly tier: string | null; readonly rules: readonly string[] | null }
  /** By limiter; `tiers` is the one by tier. JSON has null for infinite values. */
  readonly limits: Readonly<Record<string, Decision>>
  readonly routes: readonly RouteForecast[]
}

/** Reading is a state with its time: by `performance.now()`, and by the clock. */
export interface Reading {
  readonly state: KeyState
  readonly atMs: number
  readonly clockMs: number
}

const EVERY_MS = 1_000

/** useKey reads a key every second while the page is visible, and when `refresh` is called. */
export function useKey(key: string) {
  const [reading, setReading] = useState<Reading>()
  const [problem, setProblem] = useState('')
  const refresh = useCallback(async () => {
    try {
      const response = await ask(pathOf(key))
      const state = (await response.json()) as KeyState
      setReading({ state, atMs: performance.now(), clockMs: Date.now() })
      setProblem('')
    } catch (error) {
      setProblem((error as Error).message)
    }
  }, [key])
  useEffect(() => {
    void refresh()
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void refresh()
    }, EVERY_MS)
    return () => clearInterval(timer)
  }, [refresh])
  return { reading: reading?.state.key === key ? reading : undefined, problem, refresh }
}

/** pathOf is the path of a key in the API. Throws for `.` and `..`, which browsers resolve. */
export function pathOf(key: string, what = ''): string {
  if (key === '.' || key === '..') {
    throw new Error('Browsers cannot request this key. Use curl --path-as-is.')
  }
  return `/v1/keys/${encodeURIComponent(key)}${what}`
}
