/**
 * make reads the last character, so that the key has to be built, and keeps no state.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make() {
  return (key) => key.charCodeAt(key.length - 1) > 0
}
