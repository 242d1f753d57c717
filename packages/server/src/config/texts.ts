import { createPublicKey } from 'node:crypto'
import { isIP } from 'node:net'
import { type Rule, SluiceError } from 'sluice'
import { z } from 'zod'
import { serviceRule } from '../service-rule.ts'
import { shown } from './path-text.ts'

/** HEADER_NAME matches the header names that HTTP allows. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/i

/** checked is a string for which `isRight` holds; `must` is the end of "must be …". */
function checked(isRight: (text: string) => boolean, must: string) {
  return z.string(`must be ${must}`).refine(isRight, {
    error: ({ input }) => `must be ${must}; got ${shown(input)}`,
  })
}

/** A rule that the service supports. */
const ruleText = z.string("must be a rule, such as '100/1m burst 20'").check((context) => {
  try {
    serviceRule(context.value)
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    context.issues.push({
      code: 'custom',
      message: error.message,
      input: context.value,
      continue: true,
    })
  }
})

/** ruleTexts is one rule or a list of rules with different names. */
export const ruleTexts = z
  .union(
    [ruleText, z.array(ruleText).min(1, 'must have at least one rule, such as `unlimited`')],
    "must be a rule, such as '100/1m burst 20', or a list of rules",
  )
  .check((context) => {
    if (typeof context.value === 'string') return
    const first = new Map<string, number>()
    for (const [i, text] of context.value.entries()) {
      const name = nameOf(text)
      if (name === undefined) continue
      const message = `an earlier rule has the same name ${shown(name)}. Add \`name NAME\` to one.`
      if (first.has(name)) {
        context.issues.push({ code: 'custom', message, input: text, path: [i], continue: true })
      }
      first.set(name, i)
    }
  })

function nameOf(text: string): string | undefined {
  try {
    return serviceRule(text).name
  } catch {
    return undefined
  }
}

/** rulesOf parses rules that have been checked. */
export function rulesOf(texts: z.infer<typeof ruleTexts>): readonly Rule[] {
  return (typeof texts === 'string' ? [texts] : texts).map(serviceRule)
}

/** keyText is a part of a key. */
export const keyText = checked((text) => {
  if (text === 'address' || text === 'route' || text === 'jwt') return true
  const [, name] = /^(?:header|api-key):(.*)$/.exec(text) ?? []
  return name !== undefined && HEADER_NAME.test(name)
}, 'address, route, jwt, header:NAME or api-key:NAME')

/** addressText is an IP address or a CIDR block. */
export const addressText = checked((text) => {
  const [address, bits, ...more] = text.split('/')
  const kind = address.includes('%') ? 0 : isIP(address)
  if (kind === 0 || more.length > 0) return false
  return bits === undefined || (/^(0|[1-9]\d{0,2})$/.test(bits) && +bits <= (kind === 4 ? 32 : 128))
}, 'an IP address or a CIDR block, such as 10.0.0.0/8 or 2001:db8::/32')

/** listenText is a port, or a host and a port. */
export const listenText = checked(
  (text) => splitListen(text) !== undefined,
  'a port, or a host and a port, such as 8080, 0.0.0.0:8080 or [::]:8080',
)

/** listenHost is the host name or the IP address of an interface. */
export const listenHost = checked(
  (text) => isIP(text) > 0 || /^[\w.-]{1,253}$/.test(text),
  'a host, such as 127.0.0.1, or 0.0.0.0 for all interfaces',
)

/** splitListen splits `HOST:PORT` or `PORT`; undefined if it is neither. */
export function splitListen(text: string): { host: string; port: number } | undefined {
  const found = /^(?:([\w.-]{1,253}|\[[0-9a-f:.]+\]):)?(\d{1,5})$/i.exec(text)
  if (!found || Number(found[2]) > 65_535) return undefined
  const host = (found[1] ?? '127.0.0.1').replace(/^\[|\]$/g, '')
  return found[1]?.startsWith('[') && isIP(host) !== 6 ? undefined : { host, port: +found[2] }
}

/** redisText is the URL of a Redis server. */
export const redisText = checked(
  (text) => ['redis:', 'rediss:'].includes(urlOf(text)?.protocol ?? '') && urlOf(text)?.host !== '',
  'a URL such as redis://127.0.0.1:6379, or rediss:// for TLS',
)

/** storeText is `memory` or the URL of a Redis server. */
export const storeText = checked(
  (text) => text === 'memory' || redisText.safeParse(text).success,
  'memory, or a URL such as redis://127.0.0.1:6379 (rediss:// for TLS)',
)

/** upstreamText is `echo` or the origin of a server. */
export const upstreamText = checked((text) => {
  if (text === 'echo') return true
  const url = urlOf(text)
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  return isHttp && url.pathname === '/' && `${url.search}${url.hash}${url.username}` === ''
}, 'echo, or http:// or https:// with a host and no path, such as http://127.0.0.1:3000')

function urlOf(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined
}

/** pathPattern is the pattern of a route's path. */
export const pathPattern = checked((text) => {
  const segments = text.split('/')
  // Routes match the decoded path, in which these characters cannot occur.
  if (!/^\/[^\s?#;\\]*$/.test(text) || /%[0-9a-f]{2}/i.test(text)) return false
  const last = segments.length - 1
  return segments.every((segment, i) => {
    if (i === 0 || segment === '*') return true
    if (segment === '**') return i === last
    return !segment.includes('*') && !/^\.\.?$/.test(segment) && (segment !== '' || i === last)
  })
}, "a decoded path that begins with /, without ;parameters, with * for one segment and ** at the end for the rest, such as '/users/*' or '/files/**'")

/** hostText is a host name, or `*.` and a name for all hosts below it. */
export const hostText = checked(
  (text) => /^(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/i.test(text),
  'a host without a port, such as api.example.com or *.example.com',
)

/** methodText is the name of an HTTP method. */
export const methodText = checked((text) => /^[a-z-]{1,32}$/i.test(text), 'a method, such as GET')

/** headerName is the name of a header. */
export const headerName = checked((text) => HEADER_NAME.test(text), 'the name of a header')

/** nameText is the name of a tier, a route or an upstream. */
export const nameText = checked(
  (text) => /^[\x20-\x7e]{1,64}$/.test(text),
  'a name of 1 to 64 printable ASCII characters',
)

/** clientKey is the key of a client. */
export const clientKey = checked(
  (text) => text.length > 0 && text.length <= 1_024,
  'a key of 1 to 1,024 characters',
)

/** tokenText is a secret, so no message contains it. */
export const tokenText = z
  .string('must be a string of 16 to 512 characters, in quotes if it is a number')
  .refine(
    (text) => /^[\x21-\x7e]{16,512}$/.test(text),
    'must be 16 to 512 printable ASCII characters without spaces. Make one with: openssl rand -hex 24',
  )

/** secretText is the secret that signs tokens, so no message contains it. */
export const secretText = z
  .string('must be a string, in quotes if it is a number')
  .refine(
    (text) => Buffer.byteLength(text) >= 32,
    'must be at least 32 bytes, or it can be guessed. Make one with: openssl rand -hex 32',
  )

/** publicKeyText is a public key in PEM. */
export const publicKeyText = z
  .string('must be a public key in PEM')
  .refine(isPublicKey, 'must be a public key in PEM, with its lines -----BEGIN PUBLIC KEY-----')

function isPublicKey(text: string): boolean {
  // `createPublicKey` accepts private keys too, which do not belong here.
  if (!/^-----BEGIN (RSA )?PUBLIC KEY-----/.test(text.trim())) return false
  try {
    return createPublicKey(text).type === 'public'
  } catch {
    return false
  }
}

/** httpText is an HTTP URL. */
export const httpText = checked(
  (text) => ['http:', 'https:'].includes(urlOf(text)?.protocol ?? ''),
  'a URL such as https://login.example.com/.well-known/jwks.json',
)
