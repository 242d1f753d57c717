import { z } from 'zod'
import { MOST_UNITS } from '../most-units.ts'
import { table, whole } from './kinds.ts'
import * as texts from './texts.ts'

const { nameText, ruleTexts } = texts

const flag = z.boolean('must be true or false')

const key = z.union(
  [texts.keyText, z.array(texts.keyText).min(1, 'must have at least one part').max(8)],
  'must be address, route, jwt, header:NAME or api-key:NAME, or a list of these',
)

const addresses = z.array(
  texts.addressText,
  'must be a list of IP addresses and CIDR blocks, such as [10.0.0.0/8]',
)

const timeoutMs = whole(1, 3_600_000, 'of milliseconds ')

const storeTable = table(
  {
    url: texts.redisText.describe('redis:// or rediss://').optional(),
    cluster: z
      .array(texts.redisText, 'must be a list of URLs')
      .min(1, 'must have at least one URL')
      .describe('URLs of some nodes of a Redis Cluster, instead of `url`')
      .optional(),
    prefix: z
      .string('must be a string')
      .regex(/^[^{}/]{1,256}$/, 'must be 1 to 256 characters without braces and slashes')
      .describe('Prefix of all keys in Redis. Default sl')
      .optional(),
    maxKeys: whole(1, 100_000_000)
      .describe('Largest number of keys in memory. Default 1000000')
      .optional(),
    timeoutMs: timeoutMs
      .describe('Longest time that a decision waits for Redis. Default 50')
      .optional(),
    onFailure: z
      .enum(['local', 'open', 'closed'], 'must be local, open or closed')
      .describe(
        'While Redis is unavailable: count in this process (local), admit all (open) or refuse all (closed). Default local',
      )
      .optional(),
    fleetSize: whole(1, 100_000)
      .describe('Number of servers that divide the limits while each counts for itself. Default 1')
      .optional(),
  },
  'memory, a URL such as redis://127.0.0.1:6379, or a table of settings',
)

const upstreamTable = table(
  { url: texts.upstreamText, timeoutMs: timeoutMs.describe('Default 30000').optional() },
  'echo, a URL such as http://127.0.0.1:3000, or a table with url and timeoutMs',
)

const route = table(
  {
    path: texts.pathPattern.describe(
      'Pattern of the path, such as /search, /users/* (one segment) or /files/**',
    ),
    name: nameText.describe('Unique. Default: built from methods, host and path').optional(),
    methods: z
      .array(texts.methodText, 'must be a list of methods, such as [GET]')
      .describe('Default: all')
      .optional(),
    host: texts.hostText.describe('Such as api.example.com or *.example.com').optional(),
    match: table(
      {
        headers: z
          .record(
            texts.headerName,
            z.string('must be a string; put a number or true in quotes'),
            "must be a table of headers, such as { x-beta: '1' }",
          )
          .describe('Name of a header → its exact value')
          .optional(),
      },
      "a table, such as { headers: { x-beta: '1' } }",
    )
      .describe('What else a request must match')
      .optional(),
    key: key
      .describe(
        'What identifies the client; several parts are combined. Default: `key` of the file',
      )
      .optional(),
    cost: whole(0, MOST_UNITS).describe('Units that a request costs. Default 1').optional(),
    rules: ruleTexts.describe('Rules of this route, instead of the tiers').optional(),
    open: flag.describe('Requests are never limited').optional(),
    shadow: flag
      .describe(
        'Decide and report, but let requests through that a rule refuses. Blocks still refuse',
      )
      .optional(),
    upstream: nameText.describe('Name of the upstream. Default: the only upstream').optional(),
  },
  'a table with at least a path, such as { path: /search }',
)

const token = z.union(
  [
    texts.tokenText,
    table(
      {
        token: texts.tokenText,
        access: z
          .enum(['read', 'full'], 'must be read or full')
          .describe('Default full')
          .optional(),
      },
      'a token, or a table with token and access',
    ),
  ],
  'must be a token, or a table with token and access',
)

const text = z.string('must be a string').min(1, 'must not be empty')
const filePath = z.string('must be the path of a file').min(1, 'must be the path of a file')

const jwt = table(
  {
    jwks: texts.httpText.describe('URL of the JSON Web Key Set (JWKS)').optional(),
    secret: texts.secretText.describe('Secret that signs the tokens, instead of `jwks`').optional(),
    publicKey: texts.publicKeyText.describe('Public key in PEM, instead of `jwks`').optional(),
    issuer: text.describe('Required value of `iss`. Default: any').optional(),
    audience: text.describe('Value that `aud` must be or contain. Default: any').optional(),
    header: texts.headerName
      .describe('Header that carries the token. Default authorization, as Bearer TOKEN')
      .optional(),
  },
  'a table with jwks, secret or publicKey',
)

const decisionLog = table(
  {
    file: filePath,
    maxBytes: whole(1_048_576, 1_099_511_627_776, 'of bytes ')
      .describe('Size at which the file is rotated. Default 104857600')
      .optional(),
    files: whole(1, 1_000).describe('Number of rotated files to keep. Default 5').optional(),
  },
  'the path of a file, or a table with file, maxBytes and files',
)

const listenTable = table(
  {
    host: texts.listenHost.optional(),
    port: whole(0, 65_535).optional(),
  },
  'a port, HOST:PORT, or a table with host and port',
)

const listen = z.union(
  [whole(0, 65_535), texts.listenText, listenTable],
  'must be a port from 0 to 65535, HOST:PORT, or a table with host and port',
)

/**
 * configSchema is the shape of a configuration file; `crossChecks` has what holds between its
 * parts.
 */
export const configSchema = table(
  {
    $schema: z
      .string('must be a string')
      .describe('For editors; ignored by the service')
      .optional(),
    listen: listen.describe('Where the gateway listens. Default 127.0.0.1:8080').optional(),
    api: listen
      .describe('Where the API, health and metrics listen. Default 127.0.0.1:8081')
      .optional(),
    store: z
      .union(
        [texts.storeText, storeTable],
        'must be memory, a URL such as redis://127.0.0.1:6379, or a table of settings',
      )
      .describe('Where the state of all limits is kept. Default memory')
      .optional(),
    tiers: z
      .record(nameText, ruleTexts, 'must be a table of tiers, such as { free: 60/1m }')
      .refine((tiers) => Object.keys(tiers).length > 0, 'must have a tier, such as free: 60/1m')
      .describe('Name of a tier → its rule or rules, such as 60/1m burst 20'),
    defaultTier: nameText
      .describe('Tier of clients that are not listed. Default: the first tier')
      .optional(),
    clients: z
      .record(texts.clientKey, nameText, 'must be a table of clients, such as { alice: pro }')
      .describe('Key of a client → tier')
      .optional(),
    overrides: z
      .record(texts.clientKey, ruleTexts, 'must be a table of rules, such as { bob: 5/1s }')
      .describe('Key of a client → rules instead of its tier')
      .optional(),
    key: key
      .describe('What identifies a client, on routes without a `key`. Default address')
      .optional(),
    trustProxy: z
      .union([whole(0, 64), addresses], 'must be a number of proxies, or a list of their addresses')
      .describe(
        'Trusted proxies in front of the gateway: how many, or their addresses and CIDR blocks. Default 0',
      )
      .optional(),
    jwt: jwt.describe('How JSON Web Tokens are verified, for the key `jwt`').optional(),
    assignments: z
      .string('must be memory, redis or the path of a file')
      .min(1, 'must be memory, redis or the path of a file')
      .describe(
        'Where tiers and rules that operators assign at run time are kept: memory, redis or the path of a JSON file. Default: redis if the store is in Redis, else memory',
      )
      .optional(),
    decisionLog: z
      .union([filePath, decisionLog], 'must be the path of a file, or a table')
      .describe('File to which every decision is written as a line of JSON. Default: none')
      .optional(),
    allowList: addresses.describe('IP addresses and CIDR blocks that are never limited').optional(),
    denyList: addresses.describe('IP addresses and CIDR blocks that are always refused').optional(),
    headers: z
      .array(
        z.enum(['x', 'draft-6', 'draft-7', 'draft-11'], 'must be x, draft-6, draft-7 or draft-11'),
        'must be a list, such as [x, draft-11]',
      )
      .describe('Rate-limit headers of responses. Default [x, draft-11]')
      .optional(),
    upstreams: z
      .record(
        nameText,
        z.union([texts.upstreamText, upstreamTable], 'must be echo, a URL, or a table'),
        'must be a table of upstreams, such as { main: http://127.0.0.1:3000 }',
      )
      .describe('Name → http://HOST:PORT, or echo for the built-in server')
      .optional(),
    routes: z
      .array(route, 'must be a list of routes, each with a path')
      .describe('The first route that matches a request applies. Default: one for all paths')
      .optional(),
    admin: table(
      { tokens: z.array(token, 'must be a list of tokens').optional() },
      'a table with tokens',
    )
      .describe('Without tokens the API answers only callers on the same machine')
      .optional(),
    limits: table(
      {
        bodyBytes: whole(0, 1_073_741_824, 'of bytes ').describe('Default 10485760').optional(),
        headerBytes: whole(1_024, 1_048_576, 'of bytes ').describe('Default 16384').optional(),
        requestTimeoutMs: timeoutMs.describe('Default 30000').optional(),
        connections: whole(1, 1_000_000).describe('Default 10000').optional(),
      },
      'a table of numbers',
    )
      .describe('Largest sizes, times and numbers of connections')
      .optional(),
  },
  'a table with at least `tiers`, such as { tiers: { free: 60/1m } }',
)

/** Config is a configuration file of the right shape, before defaults are filled in. */
export type Config = z.infer<typeof configSchema>
