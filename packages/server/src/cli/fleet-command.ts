import { SluiceError } from 'sluice'
import { fleetText } from '../simulate/fleet/fleet-text.ts'
import { runFleets } from '../simulate/fleet/run-fleets.ts'
import type { Command } from './command.ts'
import { fleetHelp, readFleetOptions } from './fleet-options.ts'

/** The exit code when a fleet's process died, so that its bound was not checked. */
const DIED = 3

/** fleetCommand is `sluice simulate --fleet`: it compares fleets on a virtual clock. */
export const fleetCommand: Command = {
  async run(args, io) {
    const options = readFleetOptions(args)
    if (!options) return io.write(fleetHelp)
    const reports = await runFleets(options.setups).catch((error: Error) => {
      io.note(`sluice: ${error.message}. There is no report; the output above says why.`)
      process.exitCode = DIED
    })
    if (!reports) return
    if (reports.some(({ offered }) => offered === 0)) {
      throw new SluiceError('SLUICE_OPTION', 'the load has no request. Raise --rate or --for.')
    }
    await io.write(options.json ? `${JSON.stringify(reports, undefined, 2)}\n` : fleetText(reports))
    if (reports.some(({ bound }) => bound && !bound.held)) process.exitCode = 1
  },
}
