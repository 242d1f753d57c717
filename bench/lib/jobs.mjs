// @ts-check

/**
 * @typedef {object} Job the work of one process
 * @property {string} module the URL of the contestant's adapter
 * @property {string} contestant
 * @property {string} [workload] if missing, only verify that it limits
 * @property {number} repetition from 1
 * @property {boolean} quick
 * @property {boolean} decides whether its refusals are checked
 */

/**
 * jobsOf returns the processes of a run in their order: repetition by repetition, in each of them
 * workload by workload, and for each of these all contestants one after the other. Every repetition
 * starts with another contestant. A contestant skips the workloads in its `except`.
 * @template {{ name: string, except?: readonly string[] }} C
 * @param {readonly C[]} contestants @param {readonly string[]} workloads @param {number} repetitions
 * @returns {{ contestant: C, workload: string, repetition: number }[]}
 */
export function jobsOf(contestants, workloads, repetitions) {
  const jobs = []
  for (let repetition = 1; repetition <= repetitions; repetition += 1) {
    for (const workload of workloads) {
      for (let i = 0; i < contestants.length; i += 1) {
        const contestant = contestants[(i + repetition - 1) % contestants.length]
        if (contestant.except?.includes(workload)) continue
        jobs.push({ contestant, workload, repetition })
      }
    }
  }
  return jobs
}

/**
 * @typedef {{ key: string, guess: number }} Planned jobs of equal key take equally long
 * @typedef {{ key: string, guess: number, ms: number }} Done
 */

/**
 * timeLeftMs estimates how long the remaining jobs take: as long as the same job took before, or
 * else its guess, scaled by the error of the guesses so far.
 * @param {readonly Planned[]} ahead @param {readonly Done[]} done
 * @returns {number | undefined} undefined before the first job is done
 */
export function timeLeftMs(ahead, done) {
  if (done.length === 0) return undefined
  const took = new Map(done.map(({ key, ms }) => [key, ms]))
  const sum = (/** @type {number[]} */ values) => values.reduce((a, b) => a + b, 0)
  const msPerGuess = sum(done.map(({ ms }) => ms)) / sum(done.map(({ guess }) => guess))
  return sum(ahead.map(({ key, guess }) => took.get(key) ?? guess * msPerGuess))
}
