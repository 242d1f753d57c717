import { SluiceError } from 'sluice'
import { createInOrder } from '../log/in-order.ts'
import type { LogOptions } from '../log/log-format.ts'
import { openInput, sizesOf } from '../log/open-input.ts'
import { type LogCounts, newLogCounts, readLog } from '../log/read-log.ts'
import type { Report } from '../report/report.ts'
import { count } from '../report/shown.ts'
import { createScenario, type ScenarioOptions } from '../scenario/scenario.ts'
import { createProgress } from './progress.ts'
import type { Proposal } from './proposal.ts'
import { createSimulation } from './simulation.ts'
import { createVirtualClock, type VirtualClock } from './virtual-clock.ts'

/** RunOptions are common to all runs. */
export interface RunOptions {
  /** Makes the proposals on the clock of the run. */
  readonly proposals: (clock: VirtualClock, maxKeys: number) => readonly Proposal[]
  readonly maxClients: number
  readonly top: number
  /** Shows the progress. */
  readonly status?: ((text: string) => void) | undefined
}

/** LogRunOptions say which logs to read, and how. */
export interface LogRunOptions extends RunOptions {
  /** `-` is standard input. */
  readonly files: readonly string[]
  readonly input: () => AsyncIterable<Buffer>
  readonly log: LogOptions
}

/** Requests of a scenario between two checks of the time. */
const TOLD_EVERY = 1_000

/** simulateLog plays logs to proposals. It throws `SLUICE_OPTION` if no line can be read. */
export async function simulateLog(options: LogRunOptions): Promise<Report> {
  const { files, input, log, maxClients, top } = options
  const clock = createVirtualClock()
  const proposals = options.proposals(clock, maxClients)
  const simulation = createSimulation({ clock, proposals, maxClients, top })
  const order = createInOrder(simulation.take)
  const counts = newLogCounts()
  const progress = createProgress(await sizesOf(files), options.status)
  try {
    for (const file of files) {
      const chunks = openInput(file, input, progress.read)
      await readLog(file === '-' ? 'standard input' : file, chunks, log, counts, order.push)
    }
  } finally {
    progress.done()
  }
  order.flush()
  if (counts.lines === counts.unreadable) throw nothingRead(counts)
  const source = { ...counts, reordered: order.reordered(), late: order.late() }
  return { version: 1, source: { kind: 'log', ...source }, ...simulation.report() }
}

function nothingRead({ lines, problems }: LogCounts): SluiceError {
  if (lines === 0) {
    return new SluiceError('SLUICE_OPTION', 'the log is empty: there is no request to simulate.')
  }
  const [{ file, line, reason }] = problems
  return new SluiceError(
    'SLUICE_OPTION',
    `none of ${lines} lines can be read. The first, ${file}:${line}: ${reason}. ` +
      'Give the right --format, or name the fields.',
  )
}

/** ScenarioRunOptions say which scenario to play. */
export interface ScenarioRunOptions extends RunOptions {
  readonly scenario: ScenarioOptions
}

/** simulateScenario plays a generated scenario to proposals. */
export function simulateScenario(options: ScenarioRunOptions): Report {
  const { scenario, maxClients, top } = options
  const clock = createVirtualClock()
  const proposals = options.proposals(clock, maxClients)
  const traffic = createScenario(scenario)
  const onRefused = traffic.refused
  const simulation = createSimulation({ clock, proposals, maxClients, top, onRefused })
  const inAll = (scenario.ratePerSecond * scenario.forMs) / 1_000
  const progress = createProgress(
    inAll,
    options.status,
    (value) => `${count(Math.round(value))} requests`,
  )
  let taken = 0
  for (let next = traffic.next(); next; next = traffic.next()) {
    simulation.take(next)
    // Retries are not part of the expected number.
    if (next.only >= 0) continue
    taken += 1
    if (taken % TOLD_EVERY === 0) progress.read(TOLD_EVERY)
  }
  progress.done()
  return { version: 1, source: { kind: 'scenario', ...scenario }, ...simulation.report() }
}
