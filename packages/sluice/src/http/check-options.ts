import { SluiceError, shown } from '../core/errors.ts'
import { checkFunction, checkOptions, checkWhole } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import { createLimiter } from '../limiter/limiter.ts'
import type { AsyncLimiter, Limiter } from '../limiter/verbs.ts'
import { type Address, type AddressSet, parseBlock } from './address.ts'
import type { Trust } from './client-address.ts'
import { type Dialect, dialects } from './fields.ts'
import type { RateLimitOptions } from './http-options.ts'
import type { RequestKey } from './request-key.ts'

const NAMES: readonly string[] = [
  'limiter',
  'rules',
  'policy',
  'key',
  'tier',
  'cost',
  'finalCost',
  'permit',
  'skip',
  'allowList',
  'denyList',
  'trustProxy',
  'ipv6Bits',
  'countPreflights',
  'headers',
  'partitionKey',
  'shadow',
  'onLimited',
  'onDecision',
  'onError',
]

/** Options of other libraries, in which a limit is an option. */
const RATES: readonly string[] = ['windowMs', 'max', 'limit', 'per', 'ttl', 'timeWindow', 'points']

/** Checked is the checked and completed options. */
export interface Checked {
  readonly limiter: Limiter<RequestKey> | AsyncLimiter<RequestKey>
  readonly trust: Trust
  readonly allowed: AddressSet | undefined
  readonly denied: AddressSet | undefined
  readonly ipv6Bits: number
  readonly headers: readonly Dialect[]
}

/** checkHttp checks the options of `rateLimit`; `hasIp` is as that of `createGuard`. */
export function checkHttp(options: RateLimitOptions<never, never>, hasIp: boolean): Checked {
  checkGiven(options)
  for (const name of Object.keys(options)) {
    const hint =
      name === 'store'
        ? 'A limiter has a store: `limiter: createLimiter(rules, { store })`.'
        : "A limit is a rule: `rules: tokenBucket({ limit: 100, per: '1m' })`."
    if (name !== 'store' && !RATES.includes(name)) continue
    throw wrong(`there is no option ${shown(name)}. ${hint}`)
  }
  checkOptions('rateLimit', options, NAMES)
  for (const name of ['key', 'tier', 'skip', 'partitionKey'] as const) {
    checkFunction(`rateLimit: ${name}`, options[name], 'of the request')
  }
  for (const name of ['finalCost', 'onLimited', 'onDecision', 'onError'] as const) {
    checkFunction(`rateLimit: ${name}`, options[name])
  }
  const { trustProxy = 0, ipv6Bits = 64, headers = ['x', 'draft-11'] } = options
  checkWhole('rateLimit: ipv6Bits', ipv6Bits, 1, 128)
  checkFlag('shadow', options.shadow)
  checkFlag('permit', options.permit)
  checkFlag('countPreflights', options.countPreflights)
  return {
    limiter: limiterOf(options),
    trust: trustOf(trustProxy, hasIp),
    allowed: options.allowList === undefined ? undefined : blocksOf('allowList', options.allowList),
    denied: options.denyList === undefined ? undefined : blocksOf('denyList', options.denyList),
    ipv6Bits,
    headers: checkHeaders(headers),
  }
}

/** checkGiven throws if the options are not an object, or are a rule or limiter, a common mistake. */
export function checkGiven(options: unknown, hint = ''): asserts options is object {
  const [first] = Array.isArray(options) ? options : [options]
  if (isRule(first)) throw wrong('options must be an object, got a rule. Pass { rules: … }.')
  if (isLimiter(options)) {
    throw wrong('options must be an object, got a limiter. Pass { limiter: … }.')
  }
  if (shown(options) === 'an object') return
  throw wrong(`options must be an object such as { rules: … }, got ${shown(options)}.${hint}`)
}

/** trustOf checks which proxies are trusted. */
export function trustOf(trustProxy: RateLimitOptions<never>['trustProxy'], hasIp: boolean): Trust {
  if (typeof trustProxy === 'number') {
    return checkWhole('rateLimit: trustProxy', trustProxy, 0, 64)
  }
  if (Array.isArray(trustProxy)) return blocksOf('trustProxy', trustProxy)
  if (trustProxy === 'framework' && hasIp) return trustProxy
  const hint =
    (trustProxy as unknown) === true
      ? ' true would let every client choose its address.'
      : trustProxy === 'framework'
        ? ' Only Express, Fastify, Koa and Nest have a setting for proxies of their own.'
        : ''
  throw wrong(
    'trustProxy must be the number of proxies in front of this server, such as 1, or a list of ' +
      `their addresses and blocks, such as ['10.0.0.0/8'], got ${shown(trustProxy)}.${hint}`,
  )
}

function limiterOf(options: RateLimitOptions<never, never>): Checked['limiter'] {
  const { limiter, rules, policy, tier } = options
  const given = (['limiter', 'rules', 'policy'] as const).filter(
    (name) => options[name] !== undefined,
  )
  if (given.length !== 1) {
    throw wrong(
      'give one of `limiter`, `rules` and `policy`, such as ' +
        "`rules: tokenBucket({ limit: 100, per: '1m' })`, got " +
        `${given.map((name) => `\`${name}\``).join(' and ') || 'none'}.`,
    )
  }
  if (limiter !== undefined) {
    if (isLimiter(limiter)) return limiter as Limiter<RequestKey>
    const got = isRule(limiter) ? 'a rule. Pass it as `rules`' : shown(limiter)
    throw wrong(`limiter must come from createLimiter(), got ${got}.`)
  }
  if (policy !== undefined) {
    if (typeof policy?.rulesFor === 'function') return createLimiter(policy) as Limiter<RequestKey>
    throw wrong(`policy must come from createPolicy(), got ${shown(policy)}.`)
  }
  checkRules(rules)
  if (tier !== undefined) {
    throw wrong(
      '`tier` chooses a tier of a policy, and `rules` have none. Give `policy: createPolicy({ tiers })` ' +
        'in place of `rules`, or leave `tier` out.',
    )
  }
  return createLimiter(rules!) as Limiter<RequestKey>
}

function checkRules(rules: unknown): void {
  const all: readonly unknown[] = Array.isArray(rules) ? rules : [rules]
  if (all.length > 0 && all.every(isRule)) return
  const bad = all.find((each) => !isRule(each))
  const got = isLimiter(bad) ? 'a limiter. Pass it as `limiter`' : shown(bad)
  throw wrong(
    "rules must be one or more rules, such as tokenBucket({ limit: 100, per: '1m' }) or " +
      `parseRule('100/1m'), got ${all.length === 0 ? 'an empty list' : got}.`,
  )
}

function isRule(value: unknown): boolean {
  return typeof (value as Partial<Rule> | null | undefined)?.algorithm === 'object'
}

function isLimiter(value: unknown): boolean {
  return typeof (value as Partial<Limiter> | null | undefined)?.check === 'function'
}

function checkFlag(name: string, value: unknown): void {
  if (value === undefined || typeof value === 'boolean') return
  throw wrong(`${name} must be true or false, got ${shown(value)}.`)
}

function checkHeaders(headers: readonly Dialect[]): readonly Dialect[] {
  const all = dialects.map((each) => `'${each}'`).join(', ')
  if (!Array.isArray(headers)) {
    throw wrong(`headers must be a list of ${all}, such as ['draft-11'], got ${shown(headers)}.`)
  }
  const bad = headers.findIndex((each) => !dialects.includes(each))
  if (bad >= 0) {
    throw wrong(`headers: item ${bad + 1} must be one of ${all}, got ${shown(headers[bad])}.`)
  }
  const drafts = [...new Set(headers)].filter((each) => each !== 'x')
  if (drafts.length < 2) return [...new Set(headers)]
  const two = drafts.map((each) => `'${each}'`).join(' and ')
  throw wrong(
    `headers must have at most one draft, since their fields have the same names, got ${two}.`,
  )
}

function blocksOf(name: string, texts: readonly string[]): AddressSet {
  if (!Array.isArray(texts)) {
    throw wrong(
      `${name} must be a list of addresses and blocks, such as ['10.0.0.0/8'], got ${shown(texts)}.`,
    )
  }
  const blocks = texts.map((text, i) => {
    const block = typeof text === 'string' ? parseBlock(text) : undefined
    if (block) return block
    const known = NETWORKS[text]
    throw wrong(
      `${name}: item ${i + 1} must be an address or a block, such as '10.0.0.0/8', got ${shown(text)}.` +
        (known === undefined ? '' : ` That network is ${known}.`),
    )
  })
  return { has: (address: Address) => blocks.some((block) => block.has(address)) }
}

/** The names of networks in Express and Fastify. */
const NETWORKS: Readonly<Record<string, string>> = {
  loopback: "'127.0.0.0/8', '::1'",
  linklocal: "'169.254.0.0/16', 'fe80::/10'",
  uniquelocal: "'10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'",
}

function wrong(what: string): SluiceError {
  return new SluiceError('SLUICE_OPTION', `rateLimit: ${what}`)
}
