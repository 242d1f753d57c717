import { SluiceError, shown } from '../core/errors.ts'
import { checkFunction, checkWhole } from '../core/options.ts'
import type { FailureOptions } from '../limiter/verbs.ts'

/** CompleteFailure is `FailureOptions` with all defaults filled in. */
export type CompleteFailure = Required<
  Pick<FailureOptions, 'timeoutMs' | 'onStoreFailure' | 'fleetSize'>
> &
  FailureOptions

/** checkFailure checks the failure options and fills in the defaults. */
export function checkFailure(options: FailureOptions): CompleteFailure {
  const { timeoutMs = 50, onStoreFailure = 'local', fleetSize = 1 } = options
  const { onDegraded, onRecovered } = options
  checkWhole('createLimiter: timeoutMs', timeoutMs, 1, 60_000)
  checkWhole('createLimiter: fleetSize', fleetSize, 1, 10_000)
  checkFunction('createLimiter: onDegraded', onDegraded)
  checkFunction('createLimiter: onRecovered', onRecovered)
  if (['local', 'open', 'closed'].includes(onStoreFailure)) {
    return { timeoutMs, onStoreFailure, fleetSize, onDegraded, onRecovered }
  }
  throw new SluiceError(
    'SLUICE_OPTION',
    `createLimiter: onStoreFailure must be 'local', 'open' or 'closed', got ${shown(onStoreFailure)}.`,
  )
}
