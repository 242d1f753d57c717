import type { Settings } from '../settings.ts'
import { buildSettings } from './build-settings.ts'
import { ConfigError } from './config-error.ts'
import { configSchema } from './config-schema.ts'
import { crossChecks } from './cross-checks.ts'
import { explainIssues } from './explain-issues.ts'
import { readYaml } from './read-yaml.ts'
import type { Env } from './variables.ts'

/**
 * readConfig reads a configuration in YAML or JSON, of 1 MB at most, and fills in the defaults.
 * `${NAME}` in a string is replaced by a variable of `env`. It throws a `ConfigError` that lists
 * every mistake with its line; `file` is only the name that messages show.
 */
export function readConfig(text: string, file: string, env: Env): Settings {
  const source = readYaml(text, env)
  // A text that cannot be parsed has no value to check.
  if (source.value === undefined) throw new ConfigError(file, source.problems)
  // An empty file counts as an empty table.
  const result = configSchema.safeParse(source.value ?? {})
  const issues = result.success ? [] : explainIssues(result.error.issues, source)
  const reported = new Set(source.problems.map(({ path }) => path))
  const more = [...issues, ...crossChecks(source)].filter(({ path }) => !reported.has(path))
  const problems = [...source.problems, ...more]
  if (problems.length > 0 || !result.success) throw new ConfigError(file, problems)
  const settings = buildSettings(result.data)
  const { listen, api } = settings
  if (api.port !== 0 && api.port === listen.port && api.host === listen.host) {
    const message = `is the same as \`listen\`, ${api.host}:${api.port}. Give one of them another port.`
    throw new ConfigError(file, [source.problem(['api'], message)])
  }
  return settings
}
