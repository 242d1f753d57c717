import cluster from 'node:cluster'
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { pino } from 'pino'
import { SluiceError } from 'sluice'
import { startApp } from '../app/app.ts'
import { alone, among } from '../app/peers.ts'
import { checkWorkers, forWorker, startWorkers, toPrimary } from '../app/workers.ts'
import { secretNote } from '../config/bare-secrets.ts'
import { demoConfig } from '../config/demo-config.ts'
import { readConfig } from '../config/read-config.ts'
import { strayNote } from '../config/stray-keys.ts'
import { unfit, watchConfig } from '../config/watch-config.ts'
import type { Settings } from '../settings.ts'
import { type Command, readArguments } from './command.ts'
import { greeting, type Served } from './greeting.ts'
import { reportProblems } from './report-problems.ts'
import { version } from './version.ts'

const help = `Usage: sluice serve [OPTIONS]

Starts the gateway, and the API for decisions and administration. Without a configuration it starts
a demonstration with a store in memory.

Options:
  -c, --config FILE   the configuration (YAML or JSON); reloaded on SIGHUP and when it changes
      --workers N     worker processes that share the ports, or auto for one per core (default 1);
                      more than one need a store in Redis
      --log-level L   trace, debug, info (default), warn, error or silent
  -h, --help          print this help

Exit codes: 0 after SIGTERM or SIGINT, 1 if it cannot start, 2 for a mistake in the options or the
configuration.
`

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent']

/** serveCommand runs the service until a signal stops it. */
export const serveCommand: Command = {
  async run(args, io) {
    const options = {
      config: { type: 'string', short: 'c' },
      workers: { type: 'string' },
      'log-level': { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    } as const
    const { values, positionals } = readArguments(args, options, 'sluice serve --help')
    if (values.help) return io.write(help)
    const { config: file, 'log-level': level = 'info' } = values
    if (positionals.length > 0 || !LEVELS.includes(level)) {
      const what = positionals.length > 0 ? `argument ${positionals[0]}` : `log level ${level}`
      throw new SluiceError('SLUICE_OPTION', `unknown ${what}. Run sluice serve --help.`)
    }
    const read = async () =>
      file === undefined
        ? readConfig(demoConfig, 'demonstration', process.env)
        : readConfig(await textOf(file), file, process.env)
    const settings = await reportProblems(file ?? 'demonstration', io, read)
    const workers = workersOf(values.workers)
    checkWorkers(workers, settings)
    const logger = pino({ level }, pino.destination({ dest: 2, sync: false }))
    const warn = (settings: Settings) => {
      // Without upstreams the keys all come from API callers, which may use any key.
      const isGateway = settings.routes.some(({ upstream }) => upstream)
      const stray = isGateway && cluster.isPrimary ? strayNote(settings) : []
      if (stray.length > 0) logger.warn(stray.join(' '))
      const secrets = cluster.isPrimary ? secretNote(settings) : []
      if (secrets.length > 0) logger.warn(secrets.join(' '))
    }
    warn(settings)
    if (workers > 1 && cluster.isPrimary) {
      const crew = await startWorkers(workers, logger)
      await io.write(greeting(crew, file, workers))
      process.on('SIGHUP', crew.reload)
      logger.info(`${await stopped()}: finishing the requests in progress`)
      return crew.close()
    }

    const peers = cluster.isWorker ? among(toPrimary) : alone()
    const reread = async () => {
      const why = file && unfit(file)
      if (why) throw new SluiceError('SLUICE_OPTION', `cannot read ${file}: ${why}`)
      const settings = await read()
      warn(settings)
      return forWorker(settings, workers)
    }
    const app = await startApp({
      settings: forWorker(settings, workers),
      version: version(),
      logger,
      reread,
      peers,
    })
    if (cluster.isWorker) toPrimary.send({ sluice: 'ready', ...urlsOf(app) })
    else await io.write(greeting(app, file, workers))

    let isStopping = false
    const reload = async () => {
      if (isStopping) return
      await app.reload().catch((error: Error) => {
        logger.error(`the configuration was not reloaded: ${error.message}`)
      })
    }
    process.on('SIGHUP', reload)
    const unwatch = file === undefined ? () => {} : watchConfig(file, reload)
    const signal = await stopped()
    isStopping = true
    logger.info(`${signal}: finishing the requests in progress`)
    unwatch()
    await app.close()
    // The open channel to the primary would keep the process alive.
    if (cluster.isWorker) process.disconnect()
  },
}

/** Resolves with the reason to stop: a signal, or the loss of the primary. */
function stopped(): Promise<string> {
  return new Promise((resolve) => {
    // Without these listeners, a second signal ends the process at once.
    const stop = (signal: string) => {
      process.off('SIGTERM', stop)
      if (cluster.isPrimary) process.off('SIGINT', stop)
      resolve(signal)
    }
    process.on('SIGTERM', stop)
    // A terminal sends SIGINT to all processes; workers wait for the primary instead.
    process.on('SIGINT', cluster.isWorker ? () => {} : stop)
    process.once('disconnect', () => resolve('the primary has exited'))
  })
}

const MOST_WORKERS = 256

function workersOf(text = '1'): number {
  const count = text === 'auto' ? availableParallelism() : Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= MOST_WORKERS) return count
  throw new SluiceError(
    'SLUICE_OPTION',
    `--workers must be a whole number from 1 to ${MOST_WORKERS}, or auto; got ${JSON.stringify(text)}.`,
  )
}

function urlsOf({ gatewayUrl, apiUrl }: Served): Served {
  return { gatewayUrl, apiUrl }
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw new SluiceError('SLUICE_OPTION', `cannot read ${file}: ${(cause as Error).message}`, {
      cause,
    })
  }
}
