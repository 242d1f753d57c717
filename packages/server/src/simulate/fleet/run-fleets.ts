import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { extname } from 'node:path'
import type { FleetSetup } from './fleet-setup.ts'
import type { FleetReport } from './simulate-fleet.ts'

/** runFleets runs each fleet in a process of its own, as many at once as there are processors. */
export async function runFleets(setups: readonly FleetSetup[]): Promise<FleetReport[]> {
  const reports: FleetReport[] = []
  const waiting = [...setups.entries()]
  async function work(): Promise<void> {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      reports[next[0]] = await runFleet(next[1])
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  return reports
}

/**
 * Runs one fleet in a process of its own, because virtual time replaces the clock and the timers of
 * a whole process.
 */
function runFleet(setup: FleetSetup): Promise<FleetReport> {
  // Next to this file and of its kind: .js once built, .ts before.
  const file = new URL(`./fleet-process${extname(import.meta.url)}`, import.meta.url)
  const child = fork(file)
  return new Promise((resolve, reject) => {
    child.once('message', (report) => resolve(report as FleetReport))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`a fleet's process ended with ${code}`)))
    child.send(setup)
  })
}
