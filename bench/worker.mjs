// @ts-check
// Runs one contestant on one workload in its own process: `fork(worker, [JSON of the job])`.
import { verify } from './lib/adapter.mjs'
import { measure } from './lib/measure.mjs'

/** @type {import('./lib/jobs.mjs').Job} */
const job = JSON.parse(process.argv[2])

// Contestants leave timers behind, up to one per key: exit without waiting for them.
const answer = (/** @type {object} */ result) => process.send?.(result, () => process.exit())

try {
  /** @type {import('./lib/adapter.mjs').Adapter} */
  const { make, skip } = await import(job.module)
  if (skip !== undefined) answer({ skipped: skip })
  else if (job.workload !== undefined) answer(await measure(make, job))
  else {
    const failed = job.decides ? await verify(make) : undefined
    answer({ failed, async: typeof make(1, 1_000, 1) !== 'function' })
  }
} catch (error) {
  answer({ failed: error instanceof Error ? error.message : String(error) })
}
