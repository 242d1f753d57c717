import type { Rule } from 'sluice'

/** Settings are a configuration that has been read, checked and completed. */
export interface Settings {
  /** Where the gateway listens. */
  readonly listen: Listen
  /** Where the decision API, the admin API, health and metrics listen. */
  readonly api: Listen
  readonly store: StoreSettings
  /** The rules of each tier. There is at least one. */
  readonly tiers: Readonly<Record<string, readonly Rule[]>>
  /** The tier of clients that are not listed. */
  readonly defaultTier: string
  /** Key of a client → tier. */
  readonly clients: Readonly<Record<string, string>>
  /** Key of a client → rules in place of its tier's. */
  readonly overrides: Readonly<Record<string, readonly Rule[]>>
  /** Where tiers and rules that were given to clients at run time are kept. */
  readonly assignments: AssignmentSettings
  /** How tokens are verified; undefined where no key needs it. */
  readonly jwt: JwtSettings | undefined
  readonly decisionLog: DecisionLogSettings | undefined
  /** The first that matches a request counts. */
  readonly routes: readonly RouteSettings[]
  /** How many proxies stand in front, or their addresses and blocks. */
  readonly trustProxy: number | readonly string[]
  readonly allowList: readonly string[]
  readonly denyList: readonly string[]
  readonly headers: readonly ('x' | 'draft-6' | 'draft-7' | 'draft-11')[]
  readonly admin: AdminSettings
  readonly limits: LimitSettings
}

/** Listen is where a server listens. */
export interface Listen {
  readonly host: string
  readonly port: number
}

/** StoreSettings say where states are kept, and what happens while that is away. */
export interface StoreSettings {
  /** `'memory'`, or the addresses of Redis: one, or those of a Cluster. */
  readonly kind: 'memory' | 'redis' | 'cluster'
  /** redis:// or rediss://; empty for memory. */
  readonly urls: readonly string[]
  readonly prefix: string
  readonly maxKeys: number
  readonly timeoutMs: number
  readonly onFailure: 'local' | 'open' | 'closed'
  readonly fleetSize: number
}

/** storeDefaults hold where the configuration says nothing else. */
export const storeDefaults = {
  prefix: 'sl',
  maxKeys: 1_000_000,
  timeoutMs: 50,
  onFailure: 'local',
  fleetSize: 1,
} as const

/** RouteSettings say which requests a route is for, who is asking, what it costs and where it goes. */
export interface RouteSettings {
  /** Unique; part of the identity of what its own rules have counted. */
  readonly name: string
  /** Upper case; empty for all. */
  readonly methods: readonly string[]
  /** `/search`, `/users/*` (one segment), `/files/**` (any number, also none). */
  readonly path: string
  /** Lower case, without a port; `'*.example.com'` for all below. Empty for all. */
  readonly host: string
  /** Lower-case names → the exact value. */
  readonly headers: Readonly<Record<string, string>>
  /** Who is asking, part by part. Where a part is missing the client's address stands in. */
  readonly key: readonly KeyPart[]
  readonly cost: number
  /** Rules of its own; undefined for those of the client's tier. */
  readonly rules: readonly Rule[] | undefined
  /** Decides and reports, refuses no request because of a rule. A block refuses all the same. */
  readonly shadow: boolean
  /** No limit at all. */
  readonly isOpen: boolean
  readonly upstream: UpstreamSettings | undefined
}

/** KeyPart is where a part of a key comes from; an API key is kept as its hash only. */
export type KeyPart =
  | { readonly from: 'address' | 'route' | 'jwt' }
  | { readonly from: 'header' | 'api-key'; readonly name: string }

/** AssignmentSettings: in this process, in the Redis of the store, or in a file. */
export type AssignmentSettings =
  | { readonly kind: 'memory' | 'redis' }
  | { readonly kind: 'file'; readonly file: string }

/** JwtSettings say how tokens are verified: one of `jwks`, `secret` and `publicKey` is not empty. */
export interface JwtSettings {
  /** Where the public keys are fetched. */
  readonly jwks: string
  readonly secret: string
  /** PEM. */
  readonly publicKey: string
  /** What `iss` and `aud` must be; empty for anything. */
  readonly issuer: string
  readonly audience: string
  /** Lower case. */
  readonly header: string
}

/** DecisionLogSettings say where every decision is written down, and how much is kept. */
export interface DecisionLogSettings {
  readonly file: string
  /** From this size on a file is put aside. */
  readonly maxBytes: number
  /** How many are kept besides the one in use. */
  readonly files: number
}

export interface UpstreamSettings {
  readonly name: string
  /** http:// or https://, without a path; `'echo:'` is the built-in server that says what it got. */
  readonly url: string
  readonly timeoutMs: number
}

export interface AdminSettings {
  /** Without any, the admin API answers only to the machine itself. */
  readonly tokens: readonly { readonly token: string; readonly access: 'read' | 'full' }[]
}

export interface LimitSettings {
  readonly bodyBytes: number
  readonly headerBytes: number
  readonly requestTimeoutMs: number
  readonly connections: number
}
