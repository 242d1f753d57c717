// @ts-check

/**
 * drive calls a contestant with `keyOf(order[i])` for i from `from` up to but not including `to`,
 * and returns how many calls were refused. A process drives one contestant on one workload only, so
 * both call sites in the loop stay monomorphic.
 * @param {import('./adapter.mjs').Decide | import('./adapter.mjs').Asker} made
 * @param {(n: number) => string} keyOf @param {Uint32Array} order
 * @param {number} from @param {number} to
 * @returns {number | Promise<number>}
 */
export function drive(made, keyOf, order, from, to) {
  return typeof made === 'function'
    ? driveSync(made, keyOf, order, from, to)
    : driveAsync(made, keyOf, order, from, to)
}

/**
 * @param {import('./adapter.mjs').Decide} decide
 * @param {(n: number) => string} keyOf @param {Uint32Array} order
 * @param {number} from @param {number} to
 */
function driveSync(decide, keyOf, order, from, to) {
  let refused = 0
  for (let i = from; i < to; i += 1) {
    if (!decide(keyOf(order[i]))) refused += 1
  }
  return refused
}

/**
 * Makes one call at a time, like a request handler: awaits the answer, then decides.
 * @param {import('./adapter.mjs').Asker} asker
 * @param {(n: number) => string} keyOf @param {Uint32Array} order
 * @param {number} from @param {number} to
 */
async function driveAsync({ ask, passes }, keyOf, order, from, to) {
  let refused = 0
  for (let i = from; i < to; i += 1) {
    try {
      if (!passes(await ask(keyOf(order[i])))) refused += 1
    } catch (refusal) {
      if (refusal instanceof Error) throw refusal
      refused += 1
    }
  }
  return refused
}
