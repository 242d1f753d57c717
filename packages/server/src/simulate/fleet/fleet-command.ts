import type { Command } from '../../command.ts'
import { fleetHelp, readFleetOptions } from './fleet-options.ts'
import { fleetText } from './fleet-text.ts'
import { runFleets } from './run-fleets.ts'

/** fleetCommand is `sluice simulate --fleet`: it compares fleets on a virtual clock. */
export const fleetCommand: Command = {
  async run(args, io) {
    const options = readFleetOptions(args)
    if (!options) return io.write(fleetHelp)
    const reports = await runFleets(options.setups)
    await io.write(options.json ? `${JSON.stringify(reports, undefined, 2)}\n` : fleetText(reports))
    if (reports.some(({ bound }) => bound && !bound.held)) process.exitCode = 1
  },
}
