// @ts-check
import { ratiosTo, spreadOf } from './statistics.mjs'

/**
 * @typedef {import('../contestants.mjs').Contestant & {
 *   async?: boolean, skipped?: string, failed?: string }} Entrant a contestant, once verified
 * @typedef {Partial<import('./measure.mjs').Sample> & {
 *   contestant: string, workload: string, repetition: number, failed?: string }} Measured
 * @typedef {import('./statistics.mjs').Spread} Spread
 * @typedef {object} Row
 * @property {Entrant} entrant
 * @property {string} [failed] the reason, instead of results
 * @property {Spread} [ns]
 * @property {Spread} [toPeer] times the best peer's time
 * @property {Spread} [toFloor] times the floor's
 * @property {number} [refusedShare]
 * @property {number} [calls] fewest of a repetition
 * @property {Spread} [bytesPerKey]
 * @property {Spread} [stallMs]
 * @property {Spread} [heldBytes]
 */

/**
 * summarize returns a row for each entrant that ran on a workload, the fastest first, and the best
 * peer: the one with the lowest median. An entrant that failed once has no results.
 * @param {string} workload @param {readonly Entrant[]} entrants @param {readonly Measured[]} records
 * @returns {{ rows: Row[], bestPeer?: Entrant }}
 */
export function summarize(workload, entrants, records) {
  const of = (/** @type {Entrant | undefined} */ entrant) =>
    records.filter((each) => each.workload === workload && each.contestant === entrant?.name)
  const failureOf = (/** @type {Entrant} */ entrant) =>
    entrant.failed ?? of(entrant).find(({ failed }) => failed !== undefined)?.failed
  const nsOf = (/** @type {Entrant | undefined} */ entrant) =>
    new Map(of(entrant).map(({ repetition, ns = 0 }) => [repetition, ns]))

  const sound = entrants
    .filter((entrant) => failureOf(entrant) === undefined && of(entrant).length > 0)
    .map((entrant) => ({
      entrant,
      ns: /** @type {Spread} */ (spreadOf([...nsOf(entrant).values()])),
    }))
    .sort((a, b) => a.ns.median - b.ns.median)
  const bestPeer = sound.find(({ entrant }) => entrant.group === 'peer')?.entrant
  const floor = sound.find(({ entrant }) => entrant.name === 'floor')?.entrant

  const rows = sound.map(({ entrant, ns }) => {
    const samples = of(entrant)
    const spread = (/** @type {'bytesPerKey' | 'stallMs' | 'heldBytes'} */ name) =>
      spreadOf(samples.flatMap((sample) => sample[name] ?? []))
    const sum = (/** @type {'calls' | 'refused'} */ name) =>
      samples.reduce((total, sample) => total + (sample[name] ?? 0), 0)
    return {
      entrant,
      ns,
      toPeer: ratiosTo(nsOf(entrant), nsOf(bestPeer)),
      toFloor: ratiosTo(nsOf(entrant), nsOf(floor)),
      refusedShare: sum('refused') / sum('calls'),
      calls: Math.min(...samples.map(({ calls = 0 }) => calls)),
      bytesPerKey: spread('bytesPerKey'),
      stallMs: spread('stallMs'),
      heldBytes: spread('heldBytes'),
    }
  })
  const failed = entrants.flatMap((entrant) => {
    const failed = failureOf(entrant)
    return failed === undefined ? [] : [{ entrant, failed }]
  })
  return { rows: [...rows, ...failed], bestPeer }
}
