import type { FleetSetup } from './fleet-setup.ts'
import { installVirtualTime } from './virtual-time.ts'

/**
 * The process in which one fleet runs. Virtual time takes the place of its clock and timers before
 * the library is loaded, and nothing else runs here that could mind.
 */
const time = installVirtualTime()
process.once('message', async (setup: FleetSetup) => {
  const { simulateFleet } = await import('./simulate-fleet.ts')
  process.send?.(await simulateFleet(setup, time), () => process.disconnect())
})
// Also when whoever asked is gone: nobody would read the report.
process.once('disconnect', () => process.exit())
