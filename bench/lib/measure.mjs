// @ts-check
import { setImmediate } from 'node:timers/promises'
import { drive } from './drive.mjs'
import { randomOf, rising } from './random.mjs'
import { countRefused, longestStall, median } from './statistics.mjs'
import { sized } from './workloads.mjs'

const DAY_MS = 86_400_000

/** Calls per slice of the warm-up, and its least number of slices. */
const WARM_SLICE = 5_000
const WARM_SLICES = 20

/** Calls per slice of a flood. */
const FLOOD_SLICE = 1_000

/** A flood may take this many times `patienceMs`. */
const FLOOD_FACTOR = 3.5

/** The tolerance for the number of refusals: a bucket may refill a unit during the run. */
const TOLERANCE = 0.001

/**
 * @typedef {object} Sample the results of one process
 * @property {number} ns per call
 * @property {number} calls timed
 * @property {number} refused of them
 * @property {number} cpuMs user and system time of the timed part, the garbage collector's included
 * @property {number} [bytesPerKey] held after one call per key
 * @property {number} [stallMs] how much longer than the median the longest 1,000 calls of a flood took
 * @property {number} [heldBytes] more than before, after a flood
 */

/**
 * measure warms a contestant up on a workload and times it, in this process.
 * @param {import('./adapter.mjs').Make} make
 * @param {import('./jobs.mjs').Job} job
 * @returns {Promise<Sample | { failed: string }>}
 */
export async function measure(make, { workload: name = '', repetition, quick, decides }) {
  const workload = sized(name, quick)
  const { limit, keys, maxKeys, filled, warmCalls, calls, wholly, flood, keyOf } = workload
  const order = workload.order(keys, warmCalls + calls, randomOf(repetition))
  const each = rising(keys, filled ? keys : 0)
  const before = await heldBytes()
  const made = make(limit, DAY_MS, maxKeys)
  await drive(made, keyOf, each, 0, each.length)
  const bytesPerKey = filled ? ((await heldBytes()) - before) / keys : undefined

  const warm = await warmUp(made, keyOf, order, warmCalls, wholly ? undefined : quick ? 80 : 200)
  const wanted = Math.round(((quick ? 60 : 250) * 1e6) / warm.ns)
  const to = wholly ? order.length : Math.min(order.length, warm.calls + Math.max(1_000, wanted))
  gc?.()

  const cpu = process.cpuUsage()
  const timed = flood
    ? await timeSlices(made, keyOf, order, warm.calls, to, quick ? 1_000 : 2_000)
    : await timeAll(made, keyOf, order, warm.calls, to)
  const cpuMs = spentMs(cpu)

  const asked = { keys, limit, before: filled ? 1 : 0 }
  const right = countRefused(order, warm.calls, warm.calls + timed.calls, asked)
  if (decides && Math.abs(timed.refused - right) > TOLERANCE * timed.calls) {
    const failed = `refused ${timed.refused} of ${timed.calls} calls, ${right} would be right`
    return { failed }
  }
  const held = flood ? (await heldBytes()) - before : undefined
  // Use it once more, so that it was not collected before the measurement.
  await drive(made, keyOf, each, 0, Math.min(1, each.length))
  return { ...timed, cpuMs, bytesPerKey, heldBytes: held }
}

/**
 * Makes the first calls for about `ms` of this process's time, or all of them. The
 * pace is the median of the later half, since other processes may have disturbed single slices.
 * @param {ReturnType<import('./adapter.mjs').Make>} made @param {(n: number) => string} keyOf
 * @param {Uint32Array} order @param {number} most @param {number} [ms]
 */
async function warmUp(made, keyOf, order, most, ms = Number.POSITIVE_INFINITY) {
  const start = process.cpuUsage()
  const paces = []
  let calls = 0
  while (calls < most && spentMs(start) < (paces.length < WARM_SLICES ? 5 * ms : ms)) {
    const slice = await timeAll(made, keyOf, order, calls, Math.min(most, calls + WARM_SLICE))
    calls += slice.calls
    paces.push(slice.ns)
  }
  return { calls, ns: median(paces.slice(paces.length >> 1)) }
}

/**
 * @param {ReturnType<import('./adapter.mjs').Make>} made @param {(n: number) => string} keyOf
 * @param {Uint32Array} order @param {number} from @param {number} to
 */
async function timeAll(made, keyOf, order, from, to) {
  const startMs = performance.now()
  const answer = drive(made, keyOf, order, from, to)
  const refused = typeof answer === 'number' ? answer : await answer
  const ms = performance.now() - startMs
  return { ns: (ms * 1e6) / (to - from), calls: to - from, refused }
}

/**
 * Does the same in slices. After `patienceMs`, it stops a contestant that will not finish within
 * FLOOD_FACTOR times that.
 * @param {ReturnType<import('./adapter.mjs').Make>} made @param {(n: number) => string} keyOf
 * @param {Uint32Array} order @param {number} from @param {number} to @param {number} patienceMs
 */
async function timeSlices(made, keyOf, order, from, to, patienceMs) {
  const slices = new Float64Array(Math.ceil((to - from) / FLOOD_SLICE))
  let totalMs = 0
  let refused = 0
  let count = 0
  let at = from
  const tooSlow = () =>
    totalMs > patienceMs && (totalMs / (at - from)) * (to - from) > FLOOD_FACTOR * patienceMs
  while (at < to && !tooSlow()) {
    const end = Math.min(to, at + FLOOD_SLICE)
    const startMs = performance.now()
    const answer = drive(made, keyOf, order, at, end)
    refused += typeof answer === 'number' ? answer : await answer
    slices[count] = performance.now() - startMs
    totalMs += slices[count]
    count += 1
    at = end
  }
  const stallMs = longestStall(slices.subarray(0, count))
  return { ns: (totalMs * 1e6) / (at - from), calls: at - from, refused, stallMs }
}

/** Returns the CPU time that this process has used since. @param {NodeJS.CpuUsage} since */
function spentMs(since) {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1_000
}

/**
 * Returns the live memory after a garbage collection. `external` includes typed arrays, which
 * are freed in the background: collects until the result is stable.
 */
async function heldBytes() {
  for (let last = Number.POSITIVE_INFINITY; ; ) {
    gc?.()
    await setImmediate()
    const { heapUsed, external } = process.memoryUsage()
    if (heapUsed + external > last - 10_000) return heapUsed + external
    last = heapUsed + external
  }
}
