import { createHash } from 'node:crypto'
import {
  type AsyncLimiter,
  type AsyncStore,
  createLimiter,
  createPolicy,
  type Limiter,
  type Policy,
  parseRule,
  SluiceError,
  type Store,
} from 'sluice'
import type { Settings } from './settings.ts'

/** AnyLimiter is a limiter on a synchronous or asynchronous store. */
export type AnyLimiter = Limiter | AsyncLimiter

/** Limits are the limiters of a configuration. */
export interface Limits {
  /** Decides by the client's tier, or by its override. */
  readonly tiers: AnyLimiter
  readonly policy: Policy
  readonly assignments: Assignments
  /** Applies the assignments of a client to the policy. */
  assign(key: string): void
  /** The limiters of routes with their own rules: route name → limiter. */
  readonly routes: ReadonlyMap<string, AnyLimiter>
  /** All of them, `'tiers'` first: limiter name → limiter. */
  readonly all: ReadonlyMap<string, AnyLimiter>
}

/**
 * StoreEvents are called when a limiter notices that the store fails, and when it has recovered.
 */
export interface StoreEvents {
  onDegraded(limiter: string, error: Error): void
  onRecovered(): void
}

/** Assignments are tiers and rules that operators gave to clients at run time. */
export interface Assignments {
  readonly tiers: ReadonlyMap<string, string>
  /** As texts for `parseRule`. */
  readonly rules: ReadonlyMap<string, readonly string[]>
  /** Assigns a tier to a client, or removes it. Resolves once that is stored; else rejects. */
  setTier(key: string, tier: string | undefined): Promise<void>
  setRules(key: string, texts: readonly string[] | undefined): Promise<void>
}

/** noAssignments has no assignments and ignores new ones. */
export const noAssignments: Assignments = {
  tiers: new Map(),
  rules: new Map(),
  setTier: async () => {},
  setRules: async () => {},
}

/** OWN is the name of the only tier in the policy of a route with its own rules. */
export const OWN = 'own'

/**
 * createLimits makes the limiters of a configuration. Limiters of the same name share their state
 * in the store, so a new configuration keeps what the old one counted.
 */
export function createLimits(
  settings: Settings,
  store: Store | AsyncStore,
  assignments: Assignments,
  events: StoreEvents,
): Limits {
  const { timeoutMs, onFailure, fleetSize } = settings.store
  const { onRecovered } = events
  const failure = { timeoutMs, onStoreFailure: onFailure, fleetSize, onRecovered }
  const make = (policy: Policy, name: string, shown: string): AnyLimiter => {
    const onDegraded = (error: Error) => events.onDegraded(shown, error)
    const options = store.kind === 'async' ? { ...failure, onDegraded } : {}
    return createLimiter(policy, { store, name, share: true, ...options } as object)
  }

  const { tiers, defaultTier, clients, overrides } = settings
  const policy = createPolicy({
    tiers,
    defaultTier,
    overrides,
    tierOf: (key) => (Object.hasOwn(clients, key) ? clients[key] : undefined),
  })
  function assign(key: string): void {
    const tier = assignments.tiers.get(key)
    const texts = assignments.rules.get(key)
    // A tier that this configuration lacks applies again once a later one has it.
    policy.setTier(key, tier !== undefined && Object.hasOwn(tiers, tier) ? tier : undefined)
    policy.setOverride(key, texts ? texts.map((text) => parseRule(text)) : configured(key))
  }
  const configured = (key: string) => (Object.hasOwn(overrides, key) ? overrides[key] : undefined)
  for (const key of [...assignments.tiers.keys(), ...assignments.rules.keys()]) assign(key)

  const routes = new Map<string, AnyLimiter>()
  for (const { name, rules } of settings.routes) {
    if (!rules) continue
    const own = createPolicy({ tiers: { [OWN]: rules }, defaultTier: OWN })
    if (name === 'tiers') {
      throw new SluiceError(
        'SLUICE_OPTION',
        'a route with rules cannot be named "tiers". Choose another name.',
      )
    }
    routes.set(name, make(own, limiterName(name), name))
  }
  const byTier = make(policy, 'tiers', 'tiers')
  const all = new Map([['tiers', byTier], ...routes])
  return { tiers: byTier, policy, assignments, assign, routes, all }
}

/** Limiter names are short ASCII texts; a route's name may be longer, and is then hashed. */
function limiterName(route: string): string {
  if (/^[\x20-\x7e]{1,58}$/.test(route)) return `route ${route}`
  return `route ${createHash('sha256').update(route).digest('hex').slice(0, 40)}`
}
