import { setTimeout } from 'node:timers/promises'

/** until waits for a condition, and throws if it does not become true in time. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  what: string,
  mostMs = 15_000,
): Promise<void> {
  const endMs = performance.now() + mostMs
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`not within ${mostMs} ms: ${what}`)
    await setTimeout(10)
  }
}
