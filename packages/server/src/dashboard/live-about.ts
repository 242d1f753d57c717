import type { Rule } from 'sluice'
import type { Settings } from '../settings.ts'
import { shownRule } from '../shown-rule.ts'
import type { LiveAbout } from './live-event.ts'

/** aboutOf returns the parts of a configuration that the dashboard shows. */
export function aboutOf({ tiers, routes, store }: Settings, version: string): LiveAbout {
  const shown = (entries: readonly (readonly [string, readonly Rule[]])[]) =>
    Object.fromEntries(entries.map(([name, rules]) => [name, rules.map(shownRule)]))
  const own = routes.flatMap(({ name, rules }) => (rules ? [[name, rules] as const] : []))
  return {
    version,
    tiers: shown(Object.entries(tiers)),
    routes: shown(own),
    store: { kind: store.kind, onFailure: store.onFailure },
  }
}
