import type { Outage } from './link.ts'

/** FleetSetup is one fleet with its load and faults: everything that a run depends on. */
export interface FleetSetup {
  /** As `parseRule` reads it. */
  readonly rule: string
  readonly nodes: number
  readonly lease: { readonly units: number; readonly leaseMs: number } | undefined
  readonly denyCache: boolean
  readonly timeoutMs: number
  readonly onStoreFailure: 'local' | 'open' | 'closed'
  readonly fleetSize: number
  /** One-way latency between a node and Redis. */
  readonly delayMs: number
  readonly jitterMs: number
  readonly keys: number
  /** Average requests per second and key. */
  readonly perSecond: number
  readonly pattern: Pattern
  readonly forMs: number
  readonly outages: readonly Outage[]
  readonly failover: Failover | undefined
  readonly seed: number
}

/** Failover is the loss of the master with its last, unreplicated writes. */
export interface Failover {
  readonly atMs: number
  /** How much of its history is lost; all of it if this is longer than the run so far. */
  readonly lostMs: number
  /** How long until the new master answers. */
  readonly downMs: number
}

/**
 * Pattern is the distribution of requests: evenly at random, or in bursts: of every 2 s, a fifth of
 * them in the first 1.8 s, and the rest in the last 0.2 s.
 */
export type Pattern = 'random' | 'bursts'
