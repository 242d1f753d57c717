// @ts-check

/**
 * @typedef {(key: string) => boolean} Decide
 * @typedef {object} Asker an asynchronous contestant; a rejection is a refusal,
 *   unless its reason is an Error
 * @property {(key: string) => Promise<any>} ask
 * @property {(answer: any) => boolean} passes
 * @typedef {(limit: number, perMs: number, maxKeys: number) => Decide | Asker} Make
 * @typedef {{ make: Make, skip?: string }} Adapter a module in `contestants/`
 */

const LIMIT = 7
const HOUR_MS = 3_600_000

/**
 * verify calls a new limiter for two keys, up to its limit and once beyond. Returns what was wrong,
 * or undefined when the first `limit` calls of each key passed and the next was refused.
 * @param {Make} make
 * @returns {Promise<string | undefined>}
 */
export async function verify(make) {
  const made = make(LIMIT, HOUR_MS, 1_000)
  for (const key of ['alice', 'bob']) {
    for (let call = 1; call <= LIMIT + 1; call += 1) {
      const allowed = await isAllowed(made, key)
      if (allowed !== call <= LIMIT) {
        return `call ${call} of a key with limit ${LIMIT} was ${allowed ? 'allowed' : 'refused'}`
      }
    }
  }
  return undefined
}

/**
 * isAllowed calls a contestant once, synchronous or asynchronous.
 * @param {Decide | Asker} made @param {string} key
 * @returns {Promise<boolean>}
 */
async function isAllowed(made, key) {
  if (typeof made === 'function') return made(key)
  try {
    return made.passes(await made.ask(key))
  } catch (refusal) {
    if (refusal instanceof Error) throw refusal
    return false
  }
}
