import { readFile } from 'node:fs/promises'
import { pino } from 'pino'
import { SluiceError } from 'sluice'
import { startApp } from './app/app.ts'
import { type Command, readArguments } from './command.ts'
import { demoConfig } from './config/demo-config.ts'
import { readConfig } from './config/read-config.ts'
import { watchConfig } from './config/watch-config.ts'
import { reportProblems } from './report-problems.ts'
import { version } from './version.ts'

const help = `Usage: sluice serve [OPTIONS]

Starts the gateway, and the API for decisions and operators. Without a configuration it starts a
demonstration in memory.

Options:
  -c, --config FILE   the configuration (YAML or JSON); read again on SIGHUP and when it changes
      --log-level L   trace, debug, info (default), warn, error or silent
  -h, --help          print this help

Exit codes: 0 after SIGTERM or SIGINT, 1 if it cannot start, 2 for a mistake in the configuration.
`

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent']

/** serveCommand runs the service until it is told to stop. */
export const serveCommand: Command = {
  name: 'serve',
  summary: 'start the gateway and the API',
  async run(args, io) {
    const options = {
      config: { type: 'string', short: 'c' },
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
    const logger = pino({ level }, pino.destination({ dest: 2, sync: false }))
    const app = await startApp({ settings, version: version(), logger, reread: read })
    await io.write(greeting(app.gatewayUrl, app.apiUrl, file))

    let isStopping = false
    const reload = async () => {
      if (isStopping) return
      await app.reload().catch((error: Error) => {
        logger.error(`the configuration was not taken over: ${error.message}`)
      })
    }
    process.on('SIGHUP', reload)
    const unwatch = file === undefined ? () => {} : watchConfig(file, reload)
    const signal = await new Promise((resolve) => {
      for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => resolve(name))
    })
    isStopping = true
    logger.info(`${signal}: finishing what is under way`)
    unwatch()
    await app.close()
  },
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

function greeting(gateway: string, api: string, file: string | undefined): string {
  const demonstration = `
This is a demonstration: everything goes to a built-in echo. Try

  curl -i ${gateway}/hello                 20 pass at once, then one a second
  curl -i ${gateway}/search/it             costs five
  curl ${api}/v1/keys/127.0.0.1            what is left, and of what
  curl -X DELETE ${api}/v1/keys/127.0.0.1  forget it

and for your own: sluice serve --config sluice.yaml
`
  return `gateway  ${gateway}
API      ${api}   /v1/check, /v1/keys, /v1/top, /v1/auth, /v1/openapi.json, /metrics
${file === undefined ? demonstration : ''}`
}
