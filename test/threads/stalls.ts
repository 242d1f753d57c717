import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

/** A statement that accesses shared memory, or values read from it. */
const STEP = /^ +(const |words\[|Atomics\.|state = |entry = |place = |live\[|move\(|free\()/

/**
 * stalledCopy copies the built library and lets its threads pause between any two steps of the
 * protocol: each step calls `globalThis.pause` first. A lock is broken after 1 ms instead of
 * 10. `change` may add bugs by replacing texts.
 */
export function stalledCopy(change: readonly (readonly [string, string])[] = []) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-stalls-'))
  const dist = join(folder, 'dist')
  cpSync(join(root, 'packages/sluice/build/esm'), dist, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const file = join(dist, 'stores/shared-memory/buckets.js')
  let text = readFileSync(file, 'utf8')
  for (const [from, to] of [['STALL_MS = 10', 'STALL_MS = 1'] as const, ...change]) {
    if (!text.includes(from)) throw new Error(`the protocol has no more “${from}”`)
    text = text.replace(from, to)
  }
  const lines = text.split('\n')
  let steps = 0
  const paused = lines.map((line, i) => {
    // Do not change the only statement of an `if` without braces.
    const isBody = !/[{};]$|\*\/$|\/\/.*$/.test(lines[i - 1] ?? '')
    if (isBody || !STEP.test(line)) return line
    steps += 1
    return line.replace(/^( +)/, '$1globalThis.pause?.(); ')
  })
  writeFileSync(file, paused.join('\n'))
  return { dist, steps, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
