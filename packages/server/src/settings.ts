import type { Rule } from 'sluice'

/** Settings are a configuration that has been read and checked, with all defaults filled in. */
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
  /** Key of a client → rules instead of its tier's. */
  readonly overrides: Readonly<Record<string, readonly Rule[]>>
  /** Where tiers and rules that operators assign at run time are kept. */
  readonly assignments: AssignmentSettings
  /** How tokens are verified; undefined where no key needs it. */
  readonly jwt: JwtSettings | undefined
  readonly decisionLog: DecisionLogSettings | undefined
  /** The first that matches a request applies. */
  readonly routes: readonly RouteSettings[]
  /** How many trusted proxies are in front, or their IP addresses and CIDR blocks. */
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

/**
 * StoreSettings say where the state of limits is kept, and what happens while it is unavailable.
 */
export interface StoreSettings {
  /** `'memory'`, or Redis by the URL of one server or those of a Cluster. */
  readonly kind: 'memory' | 'redis' | 'cluster'
  /** redis:// or rediss://; empty for memory. */
  readonly urls: readonly string[]
  readonly prefix: string
  readonly maxKeys: number
  readonly timeoutMs: number
  readonly onFailure: 'local' | 'open' | 'closed'
  readonly fleetSize: number
}

/** storeDefaults are the defaults of `StoreSettings`. */
export const storeDefaults = {
  prefix: 'sl',
  maxKeys: 1_000_000,
  timeoutMs: 50,
  onFailure: 'local',
  fleetSize: 1,
} as const

/** RouteSettings say which requests match, what identifies a client, the cost and the upstream. */
export interface RouteSettings {
  /** Unique; the state of the route's own rules is kept under it. */
  readonly name: string
  /** Upper case; empty for all. */
  readonly methods: readonly string[]
  /** `/search`, `/users/*` (one segment), `/files/**` (any number of segments, or none). */
  readonly path: string
  /** Lower case, without a port; `'*.example.com'` for all below. Empty for all. */
  readonly host: string
  /** Lower-case names → the exact value. */
  readonly headers: Readonly<Record<string, string>>
  /** What identifies a client, part by part. The client's address replaces a missing part. */
  readonly key: readonly KeyPart[]
  readonly cost: number
  /** The route's own rules; undefined for those of the client's tier. */
  readonly rules: readonly Rule[] | undefined
  /** Decides and reports, but lets requests through that a rule refuses. Blocks still refuse. */
  readonly shadow: boolean
  /** Requests are never limited. */
  readonly isOpen: boolean
  readonly upstream: UpstreamSettings | undefined
}

/** KeyPart is the source of one part of a key; of an API key only the hash is kept. */
export type KeyPart =
  | { readonly from: 'address' | 'route' | 'jwt' }
  | { readonly from: 'header' | 'api-key'; readonly name: string }

/** AssignmentSettings keep assignments in this process, in the Redis of the store, or in a file. */
export type AssignmentSettings =
  | { readonly kind: 'memory' | 'redis' }
  | { readonly kind: 'file'; readonly file: string }

/**
 * JwtSettings say how tokens are verified: one of `jwks`, `secret` and `publicKey` is not empty.
 */
export interface JwtSettings {
  /** The URL of the public keys. */
  readonly jwks: string
  readonly secret: string
  /** PEM. */
  readonly publicKey: string
  /** Required values of `iss` and `aud`; empty for any. */
  readonly issuer: string
  readonly audience: string
  /** Lower case. */
  readonly header: string
}

/** DecisionLogSettings say where decisions are logged, and how much is kept. */
export interface DecisionLogSettings {
  readonly file: string
  /** Size at which the file is rotated. */
  readonly maxBytes: number
  /** Number of rotated files to keep. */
  readonly files: number
}

export interface UpstreamSettings {
  readonly name: string
  /** http:// or https://, without a path; `'echo:'` is the built-in server that echoes requests. */
  readonly url: string
  readonly timeoutMs: number
}

export interface AdminSettings {
  /** Without tokens, the API answers only callers on the same machine. */
  readonly tokens: readonly { readonly token: string; readonly access: 'read' | 'full' }[]
}

export interface LimitSettings {
  readonly bodyBytes: number
  readonly headerBytes: number
  readonly requestTimeoutMs: number
  readonly connections: number
}
