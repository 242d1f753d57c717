import type { Outage } from './link.ts'

/** FleetSetup is one fleet, its load, and what happens to it: all that a run depends on. */
export interface FleetSetup {
  /** As `parseRule` reads it. */
  readonly rule: string
  readonly nodes: number
  readonly lease: { readonly units: number; readonly leaseMs: number } | undefined
  readonly denyCache: boolean
  readonly timeoutMs: number
  readonly onStoreFailure: 'local' | 'open' | 'closed'
  readonly fleetSize: number
  /** From a node to Redis, and back again. */
  readonly delayMs: number
  readonly jitterMs: number
  readonly keys: number
  /** Requests for each key, on average. */
  readonly perSecond: number
  readonly pattern: Pattern
  readonly forMs: number
  readonly outages: readonly Outage[]
  readonly failover: Failover | undefined
  readonly seed: number
}

/** Failover is the loss of the master: what it wrote last, nobody has. */
export interface Failover {
  readonly atMs: number
  /** How much of its past is lost; all of it if it is longer than the run so far. */
  readonly lostMs: number
  /** How long until the next one answers. */
  readonly downMs: number
}

/**
 * Pattern is how requests come: evenly at random, or in bursts: of every 2 s, a fifth of them in the
 * first 1.8 s, and the rest in the last 0.2 s.
 */
export type Pattern = 'random' | 'bursts'
