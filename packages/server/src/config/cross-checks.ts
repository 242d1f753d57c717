import { parseRule, type Rule } from 'sluice'
import type { Problem } from './config-error.ts'
import { nearest } from './nearest.ts'
import { type Path, shown } from './path-text.ts'
import type { Source } from './read-yaml.ts'
import { routeName } from './route-name.ts'

type Table = Readonly<Record<string, unknown>>

/**
 * crossChecks finds mistakes between the parts of a file, such as a route to an unknown upstream.
 * It skips parts that are malformed themselves, which the schema reports.
 */
export function crossChecks(source: Source): Problem[] {
  const problems: Problem[] = []
  const file = tableOf(source.value)
  const tiers = tableOf(file.tiers)
  const upstreams = tableOf(file.upstreams)
  const add = (path: Path, message: string) => problems.push(source.problem(path, message))

  function refer(path: Path, name: unknown, what: string, names: readonly string[]): void {
    if (typeof name !== 'string' || names.includes(name)) return
    const near = nearest(name, names)
    const known = names.slice(0, 20).join(', ')
    const hint = near ? `Did you mean ${near}?` : known ? `Known: ${known}.` : 'None is defined.'
    add(path, `there is no ${what} ${shown(name)}. ${hint}`)
  }

  const tierNames = Object.keys(tiers)
  // Without any tier, the schema reports only that.
  if (tierNames.length > 0) {
    refer(['defaultTier'], file.defaultTier, 'tier', tierNames)
    const known = new Set<unknown>(tierNames)
    for (const [key, tier] of Object.entries(tableOf(file.clients))) {
      if (!known.has(tier)) refer(['clients', key], tier, 'tier', tierNames)
    }
  }

  const store = tableOf(file.store)
  if (store.url !== undefined && store.cluster !== undefined) {
    add(['store', 'cluster'], '`url` is also given. Keep one of them.')
  }

  if (file.assignments === 'redis' && !isRedis(file.store)) {
    add(['assignments'], 'the store is not in Redis. Give the path of a file, or a store in Redis.')
  }

  const sources = ['jwks', 'secret', 'publicKey'].filter((name) => name in tableOf(file.jwt))
  if (typeof file.jwt === 'object' && file.jwt !== null && sources.length !== 1) {
    const have = sources.length === 0 ? 'has none of them' : `has ${sources.join(', ')}`
    add(['jwt'], `must have exactly one of jwks, secret and publicKey, but ${have}.`)
  }
  const needsTokens = (key: unknown) => [key].flat().includes('jwt') && file.jwt === undefined
  const missing = 'the key `jwt` needs settings that verify tokens. Add them: jwt: { jwks: … }'
  if (needsTokens(file.key)) add(['key'], missing)

  const tokens = new Set<unknown>()
  for (const [i, each] of listOf(file.admin && tableOf(file.admin).tokens).entries()) {
    const token = typeof each === 'string' ? each : tableOf(each).token
    if (typeof token === 'string' && tokens.has(token)) {
      add(['admin', 'tokens', i], 'repeats an earlier token. Remove one of them.')
    }
    tokens.add(token)
  }

  const names = new Map<string, number>()
  let catchAll: string | undefined
  for (const [i, each] of listOf(file.routes).entries()) {
    const route = tableOf(each)
    const at = (name: string): Path => ['routes', i, name]
    if (needsTokens(route.key)) add(at('key'), missing)
    refer(at('upstream'), route.upstream, 'upstream', Object.keys(upstreams))
    if (route.open === true && route.rules !== undefined) {
      add(at('open'), 'an open route has no limit, but `rules` is given. Remove one of them.')
    }
    if (typeof route.path !== 'string') continue
    const name = routeName(route)
    const where = typeof route.name === 'string' ? at('name') : at('path')
    const first = names.get(name)
    if (first !== undefined) {
      add(
        where,
        `routes[${first}] has the same name ${shown(name)}. Give one of them another \`name\`.`,
      )
    } else if (typeof route.name !== 'string' && name.length > 64) {
      add(where, 'is too long to serve as the name of the route. Add a `name`.')
    }
    if (first === undefined) names.set(name, i)
    if (catchAll !== undefined) {
      add(at('path'), `is never reached: ${catchAll} above it matches every request. Move it up.`)
    }
    const { methods, host, match } = route
    const takesAll = methods === undefined && host === undefined && match === undefined
    if (takesAll && route.path === '/**') catchAll ??= `routes[${i}]`
    checkCost(route, i)
  }

  /** Reports a cost above the capacity of a rule: every such request would be an error. */
  function checkCost(route: Table, i: number): void {
    const { cost } = route
    if (typeof cost !== 'number' || route.open === true) return
    const lists = route.rules === undefined ? [...Object.values(tiers)] : [route.rules]
    const rules = lists.flatMap((list) => (Array.isArray(list) ? list : [list])).flatMap(ruleOf)
    const small = rules.find((rule) => cost > rule.capacity)
    if (!small) return
    const most = `${shown(small.name)} (${small.limit} units) admits at most ${small.capacity} at once`
    add(
      ['routes', i, 'cost'],
      `is ${cost}, but the rule ${most}. Lower the cost, or raise the burst.`,
    )
  }

  return problems
}

function isRedis(store: unknown): boolean {
  if (typeof store === 'string') return store !== 'memory'
  return 'url' in tableOf(store) || 'cluster' in tableOf(store)
}

function ruleOf(text: unknown): Rule[] {
  try {
    return [parseRule(text as string)]
  } catch {
    return []
  }
}

function tableOf(value: unknown): Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Table)
    : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
