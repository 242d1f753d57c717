import { z } from 'zod'
import { MOST_UNITS } from '../most-units.ts'
import { table, whole } from './kinds.ts'
import * as texts from './texts.ts'

const { nameText, ruleTexts } = texts

const flag = z.boolean('must be true or false')

const key = z.union(
  [texts.keyText, z.array(texts.keyText).min(1, 'must have a part at least').max(8)],
  'must be address, route, jwt, header:NAME or api-key:NAME, or a list of these',
)

const addresses = z.array(
  texts.addressText,
  'must be a list of addresses and blocks, such as [10.0.0.0/8]',
)

const timeoutMs = whole(1, 3_600_000, 'of milliseconds ')

const storeTable = table(
  {
    url: texts.redisText.describe('redis:// or rediss://').optional(),
    cluster: z
      .array(texts.redisText, 'must be a list of addresses')
      .min(1, 'must have an address at least')
      .describe('Addresses of some nodes of a Redis Cluster, in place of `url`')
      .optional(),
    prefix: z
      .string('must be a text')
      .regex(/^[^{}/]{1,256}$/, 'must be 1 to 256 characters without braces and slashes')
      .describe('What all keys in Redis begin with. Default sl')
      .optional(),
    maxKeys: whole(1, 100_000_000)
      .describe('Keys kept in memory at most. Default 1000000')
      .optional(),
    timeoutMs: timeoutMs.describe('How long a decision may wait for Redis. Default 50').optional(),
    onFailure: z
      .enum(['local', 'open', 'closed'], 'must be local, open or closed')
      .describe('While Redis is away: count here (local), admit (open) or refuse (closed) all')
      .optional(),
    fleetSize: whole(1, 100_000)
      .describe('How many servers share the limits when each counts for itself. Default 1')
      .optional(),
  },
  'memory, an address such as redis://127.0.0.1:6379, or a table of settings',
)

const upstreamTable = table(
  { url: texts.upstreamText, timeoutMs: timeoutMs.describe('Default 30000').optional() },
  'echo, an address such as http://127.0.0.1:3000, or a table with url and timeoutMs',
)

const route = table(
  {
    path: texts.pathPattern.describe('Such as /search, /users/* (one segment) or /files/**'),
    name: nameText.describe('Unique. Default: made of methods, host and path').optional(),
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
            z.string('must be a text; put a number or true in quotes'),
            "must be a table of headers, such as { x-beta: '1' }",
          )
          .describe('Name of a header → its exact value')
          .optional(),
      },
      "a table, such as { headers: { x-beta: '1' } }",
    )
      .describe('What else a request must have')
      .optional(),
    key: key
      .describe('Who is asking; several parts are combined. Default: `key` of the file')
      .optional(),
    cost: whole(0, MOST_UNITS).describe('Units that a request takes. Default 1').optional(),
    rules: ruleTexts.describe('Rules of its own, in place of the tiers').optional(),
    open: flag.describe('No limit at all').optional(),
    shadow: flag
      .describe('Decides and reports, but refuses no request because of a rule; a block refuses')
      .optional(),
    upstream: nameText
      .describe('Where requests go. Default: the upstream if there is one')
      .optional(),
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

const text = z.string('must be a text').min(1, 'must not be empty')
const filePath = z.string('must be the path of a file').min(1, 'must be the path of a file')

const jwt = table(
  {
    jwks: texts.httpText.describe('Where public keys are fetched').optional(),
    secret: texts.secretText.describe('What tokens are signed with, in place of `jwks`').optional(),
    publicKey: texts.publicKeyText.describe('In PEM, in place of `jwks`').optional(),
    issuer: text.describe('What `iss` must be. Default: anything').optional(),
    audience: text.describe('What `aud` must be or have. Default: anything').optional(),
    header: texts.headerName
      .describe('Where the token is. Default authorization, as Bearer TOKEN')
      .optional(),
  },
  'a table with jwks, secret or publicKey',
)

const decisionLog = table(
  {
    file: filePath,
    maxBytes: whole(1_048_576, 1_099_511_627_776, 'of bytes ')
      .describe('From this size on a new file is begun. Default 104857600')
      .optional(),
    files: whole(1, 1_000).describe('How many are kept besides. Default 5').optional(),
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

/** configSchema is the shape of a configuration file. What holds between its parts is not in it. */
export const configSchema = table(
  {
    $schema: z.string('must be a text').describe('For editors; not used here').optional(),
    listen: listen.describe('Where the gateway listens. Default 127.0.0.1:8080').optional(),
    api: listen
      .describe('Where the API, health and metrics listen. Default 127.0.0.1:8081')
      .optional(),
    store: z
      .union(
        [texts.storeText, storeTable],
        'must be memory, an address such as redis://127.0.0.1:6379, or a table of settings',
      )
      .describe('Where states are kept. Default memory')
      .optional(),
    tiers: z
      .record(nameText, ruleTexts, 'must be a table of tiers, such as { free: 60/1m }')
      .refine((tiers) => Object.keys(tiers).length > 0, 'must have a tier, such as free: 60/1m')
      .describe('Name of a tier → its rule or rules, such as 60/1m burst 20'),
    defaultTier: nameText.describe('Of clients not listed. Default: the first tier').optional(),
    clients: z
      .record(texts.clientKey, nameText, 'must be a table of clients, such as { alice: pro }')
      .describe('Key of a client → tier')
      .optional(),
    overrides: z
      .record(texts.clientKey, ruleTexts, 'must be a table of rules, such as { bob: 5/1s }')
      .describe('Key of a client → rules in place of its tier')
      .optional(),
    key: key.describe('Who is asking, for routes that do not say. Default address').optional(),
    trustProxy: z
      .union([whole(0, 64), addresses], 'must be a number of proxies, or a list of their addresses')
      .describe('Proxies in front: how many, or their addresses and blocks. Default 0')
      .optional(),
    jwt: jwt.describe('How tokens are verified, for the key `jwt`').optional(),
    assignments: z
      .string('must be memory, redis or the path of a file')
      .min(1, 'must be memory, redis or the path of a file')
      .describe(
        'Where tiers and rules that are given to clients at run time are kept: memory, redis or a JSON file. Default: with the store',
      )
      .optional(),
    decisionLog: z
      .union([filePath, decisionLog], 'must be the path of a file, or a table')
      .describe('Where every decision is written down, a line of JSON each. Default: nowhere')
      .optional(),
    allowList: addresses.describe('Addresses and blocks that are never limited').optional(),
    denyList: addresses.describe('Addresses and blocks that are always refused').optional(),
    headers: z
      .array(
        z.enum(['x', 'draft-6', 'draft-7', 'draft-11'], 'must be x, draft-6, draft-7 or draft-11'),
        'must be a list, such as [x, draft-11]',
      )
      .describe('Which headers tell clients of their limits. Default [x, draft-11]')
      .optional(),
    upstreams: z
      .record(
        nameText,
        z.union([texts.upstreamText, upstreamTable], 'must be echo, an address, or a table'),
        'must be a table of upstreams, such as { main: http://127.0.0.1:3000 }',
      )
      .describe('Name → http://HOST:PORT, or echo for the built-in server')
      .optional(),
    routes: z
      .array(route, 'must be a list of routes, each with a path')
      .describe('The first that matches a request counts. Default: one for all paths')
      .optional(),
    admin: table(
      { tokens: z.array(token, 'must be a list of tokens').optional() },
      'a table with tokens',
    )
      .describe('Without tokens the admin API answers only to the machine itself')
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
      .describe('The most that a request may take')
      .optional(),
  },
  'a table that has `tiers` at least, such as { tiers: { free: 60/1m } }',
)

/** Config is a file of the right shape, as it is written. */
export type Config = z.infer<typeof configSchema>
