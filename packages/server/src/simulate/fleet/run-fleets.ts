import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { extname } from 'node:path'
import type { FleetSetup } from './fleet-setup.ts'
import type { FleetReport } from './simulate-fleet.ts'

/**
 * runFleets runs each fleet in its own process, as many at once as there are processors. It rejects
 * when one of them dies, and ends the others.
 */
export async function runFleets(setups: readonly FleetSetup[]): Promise<FleetReport[]> {
  const reports: FleetReport[] = []
  const waiting = [...setups.entries()]
  const failed = new AbortController()
  async function work(): Promise<void> {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      reports[next[0]] = await runFleet(next[1], failed.signal)
    }
  }
  try {
    await Promise.all(Array.from({ length: availableParallelism() }, work))
  } catch (error) {
    waiting.length = 0
    failed.abort()
    throw error
  }
  return reports
}

/**
 * Runs one fleet in its own process, because virtual time replaces the clock and the timers of a
 * whole process.
 */
function runFleet(setup: FleetSetup, signal: AbortSignal): Promise<FleetReport> {
  // The file next to this one: .js in a build, else .ts.
  const file = new URL(`./fleet-process${extname(import.meta.url)}`, import.meta.url)
  const child = fork(file, { signal })
  return new Promise((resolve, reject) => {
    child.once('message', (report) => resolve(report as FleetReport))
    child.once('error', reject)
    child.once('exit', (code, signal) =>
      reject(new Error(`the process of a fleet died: ${signal ?? `exit code ${code}`}`)),
    )
    child.send(setup)
  })
}
