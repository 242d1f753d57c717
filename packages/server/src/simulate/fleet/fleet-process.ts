import type { FleetSetup } from './fleet-setup.ts'
import { installVirtualTime } from './virtual-time.ts'

/**
 * The process in which one fleet runs. Virtual time replaces its clock and timers before the
 * library is loaded.
 */
const time = installVirtualTime()
process.once('message', async (setup: FleetSetup) => {
  const { simulateFleet } = await import('./simulate-fleet.ts')
  process.send?.(await simulateFleet(setup, time), () => process.disconnect())
})
// Also exits when the parent has gone: nothing would read the report.
process.once('disconnect', () => process.exit())
