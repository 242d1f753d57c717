import type { Rule, Source } from 'sluice'
import { type Bound, ruleAlone, worstExcess } from './bound.ts'
import type { FleetSetup } from './fleet-setup.ts'

/** FleetKey is the result of one key. */
export interface FleetKey {
  readonly name: string
  /** When each unit was admitted, in microseconds: by Redis's clock if Redis decided. */
  readonly instants: number[]
  /** What a single limiter that sees all requests at their instants would have admitted. */
  ideal: number
  /** Units regained by failovers. */
  lost: number
}

/** Sources counts decisions by source. */
export type Sources = Partial<Record<Source, number>>

/** Judgement compares the admissions with the ideal, and with the documented bound. */
export interface Judgement {
  readonly admitted: number
  readonly ideal: number
  /** The most units of one key above what the rule admits, in any interval; 0 for none. */
  readonly over: number
  /** The share of the ideal that was not admitted. */
  readonly under: number
  /** Undefined where all requests may pass. */
  readonly bound: JudgedBound | undefined
}

/** JudgedBound is a documented bound, and whether it held. */
export interface JudgedBound {
  /** The bound as a formula, for the key with the most regained units. */
  readonly text: string
  /** The smallest distance to the bound in units; negative if it did not hold. */
  readonly spare: number
  readonly held: boolean
}

/** judge checks every key separately. */
export function judge(
  setup: FleetSetup,
  rule: Rule,
  keys: readonly FleetKey[],
  sources: Sources,
): Judgement {
  const ideal = sum(keys.map((key) => key.ideal))
  const missing = sum(keys.map((key) => Math.max(0, key.ideal - key.instants.length)))
  const sorted = keys.map(({ instants }) => Float64Array.from(instants).sort())
  const over = Math.max(...sorted.map((instants) => worstExcess(rule, ruleAlone, instants)))
  return {
    admitted: sum(keys.map(({ instants }) => instants.length)),
    ideal,
    over: Math.max(0, over),
    under: ideal === 0 ? 0 : missing / ideal,
    bound: sources.open ? undefined : judgeBound(),
  }

  function judgeBound(): JudgedBound {
    const bounds = keys.map(({ lost }) => boundOf(setup, sources, lost))
    const excess = bounds.map((bound, k) => worstExcess(rule, bound, sorted[k]))
    const spare = -Math.max(...excess)
    const most = Math.max(...keys.map(({ lost }) => lost))
    const text = boundText(rule, boundOf(setup, sources, most))
    return { text, spare, held: spare >= 0 }
  }
}

/** The bound of docs/operate/redis.md for the faults of a fleet. */
function boundOf({ lease, nodes, fleetSize }: FleetSetup, sources: Sources, lost: number): Bound {
  return {
    leaseUs: (lease?.leaseMs ?? 0) * 1_000,
    nodes: sources.local ? nodes : 0,
    fleetSize,
    units: lost,
  }
}

function boundText(rule: Rule, { leaseUs, nodes, fleetSize, units }: Bound): string {
  const times = nodes / fleetSize
  const own = leaseUs > 0 ? `A(t + ${leaseUs / 1_000} ms)` : 'A(t)'
  const beyond = (nodes * Math.max(0, fleetSize - rule.capacity)) / fleetSize
  const parts = [
    leaseUs === 0 && times > 0 ? `${round(1 + times)} A(t)` : own,
    ...(leaseUs > 0 && times > 0 ? [`${times === 1 ? '' : `${round(times)} `}A(t)`] : []),
    ...(beyond > 0 ? [`${Math.ceil(beyond)} (one for each node)`] : []),
    ...(units > 0 ? [`${units} lost`] : []),
  ]
  return parts.join(' + ')
}

const round = (value: number) => Math.round(value * 100) / 100

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
