import { describe, expect, it } from 'vitest'
import { ConfigError } from './config-error.ts'
import { readConfig } from './read-config.ts'

const env = { TOKEN: 'a-secret-of-22-letters', PORT: '9000', SHORT: 'short-secret' }

/** The problems of a text as `LINE:COLUMN path: message`. */
function problemsOf(text: string): string[] {
  try {
    readConfig(text, 'x.yaml', env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((p) => `${p.line}:${p.column} ${p.path}: ${p.message}`)
  }
  return []
}

const good = `
listen: 0.0.0.0:${'$'}{PORT}
api: { port: 9001 }
store: { cluster: ['redis://a:1', 'redis://b:2'], onFailure: closed, fleetSize: 3 }
tiers:
  free: 60/1m burst 20
  pro: [600/1m, 10000/1d fixed-window]
  internal: unlimited
clients: { alice: pro, constructor: internal, 007: pro }
overrides: { bob: 5/1s }
key: header:X-User
trustProxy: [10.0.0.0/8, '::1']
allowList: [192.0.2.1]
headers: [draft-7]
upstreams:
  main: http://127.0.0.1:3000/
  demo: { url: echo, timeoutMs: 5 }
routes:
  - path: /Search/**
    methods: [get, POST]
    host: API.example.com
    match: { headers: { X-Beta: '1' } }
    key: [api-key:X-Api-Key, route]
    cost: 5
    rules: 10/1m
    shadow: true
    upstream: main
  - { path: /health, open: true }
admin:
  tokens:
    - ${'$'}{TOKEN}
    - { token: another-secret-of-mine, access: read }
limits: { connections: 5 }
`

describe('readConfig', () => {
  it('reads a file that has every field', () => {
    const settings = readConfig(good, 'x.yaml', env)
    expect(settings).toMatchObject({
      listen: { host: '0.0.0.0', port: 9000 },
      api: { host: '127.0.0.1', port: 9001 },
      store: { kind: 'cluster', urls: ['redis://a:1', 'redis://b:2'], fleetSize: 3, prefix: 'sl' },
      defaultTier: 'free',
      clients: { alice: 'pro', constructor: 'internal', '007': 'pro' },
      trustProxy: ['10.0.0.0/8', '::1'],
      headers: ['draft-7'],
      admin: {
        tokens: [
          { token: env.TOKEN, access: 'full' },
          { token: 'another-secret-of-mine', access: 'read' },
        ],
      },
      limits: { connections: 5, bodyBytes: 10_485_760 },
    })
    expect(settings.tiers.pro.map(({ name }) => name)).toEqual(['token-bucket', 'fixed-window'])
    expect(settings.overrides.bob[0].limit).toBe(5)
    expect(settings.routes).toMatchObject([
      {
        name: 'GET,POST api.example.com/Search/**',
        methods: ['GET', 'POST'],
        path: '/Search/**',
        host: 'api.example.com',
        headers: { 'x-beta': '1' },
        key: [{ from: 'api-key', name: 'x-api-key' }, { from: 'route' }],
        cost: 5,
        shadow: true,
        isOpen: false,
        upstream: { name: 'main', url: 'http://127.0.0.1:3000', timeoutMs: 30_000 },
      },
      {
        name: '/health',
        isOpen: true,
        key: [{ from: 'header', name: 'x-user' }],
        upstream: undefined,
      },
    ])
  })

  it('needs only tiers, also as JSON, and fills in the rest', () => {
    const settings = readConfig('{"tiers": {"free": "60/1m"}}', 'x.json', {})
    expect(settings).toMatchObject({
      listen: { host: '127.0.0.1', port: 8080 },
      api: { host: '127.0.0.1', port: 8081 },
      store: { kind: 'memory', urls: [], maxKeys: 1_000_000, timeoutMs: 50, onFailure: 'local' },
      routes: [{ name: '/**', path: '/**', cost: 1, rules: undefined, upstream: undefined }],
      admin: { tokens: [] },
    })
    // Clients choose their keys: no table may have a value for `constructor`.
    expect(settings.clients.constructor).toBeUndefined()
    expect(settings.tiers.toString).toBeUndefined()
  })

  it('keeps assignments in the store, and fills in tokens and the decision log', () => {
    const read = (more: string) => readConfig(`tiers: { a: 1/1s }\n${more}`, 'x', env)
    expect(read('').assignments).toEqual({ kind: 'memory' })
    expect(read('store: redis://a').assignments).toEqual({ kind: 'redis' })
    expect(read('store: redis://a\nassignments: memory').assignments).toEqual({ kind: 'memory' })
    expect(read('assignments: a.json').assignments).toEqual({ kind: 'file', file: 'a.json' })
    const log = { file: 'd.jsonl', maxBytes: 104_857_600, files: 5 }
    expect(read('decisionLog: d.jsonl').decisionLog).toEqual(log)
    const secret = 'x'.repeat(32)
    const { jwt, routes } = read(`key: jwt\njwt: { secret: ${secret}, header: X-Token }`)
    expect(jwt).toEqual({
      ...{ secret, jwks: '', publicKey: '', issuer: '', audience: '' },
      header: 'x-token',
    })
    expect(routes[0].key).toEqual([{ from: 'jwt' }])
  })

  it('sends all routes to the only upstream', () => {
    const { routes } = readConfig('tiers: { a: 1/1s }\nupstreams: { demo: echo }', 'x', {})
    expect(routes[0].upstream).toEqual({ name: 'demo', url: 'echo:', timeoutMs: 30_000 })
  })

  it('fills in the same value at an alias', () => {
    const { tiers } = readConfig('tiers:\n  a: &r [1/1s, 5/1m name m]\n  b: *r', 'x', {})
    expect(tiers.b.map(({ limit }) => limit)).toEqual([1, 5])
  })

  it.each([
    ['', '1:1 tiers: is missing; it must be a table of tiers'],
    ['[]', '1:1 : must be a table with at least `tiers`'],
    ['tiers:', '1:7 tiers: is empty; it must be a table of tiers'],
    ['tiers: {}', '1:8 tiers: must have a tier'],
    ['tiers: { free: 60 }', "1:16 tiers.free: must be a rule, such as '100/1m burst 20', or"],
    ['tiers: { free: 60/1x }', '1:16 tiers.free: cannot read the rule "60/1x"'],
    [
      'tiers: { a: [1/1s, 2/1m] }',
      '1:20 tiers.a[1]: an earlier rule has the same name "token-bucket"',
    ],
    ['tiers: { a: 1/1m by user }', 'rules of the service count clients. Remove `by user`'],
    ['tiers: { a: 10 concurrent hold 30s }', 'the service does not support concurrency'],
    ['tiers: { a: 1/1s }\ntires: 1', '2:1 tires: "tires" is unknown. Did you mean tiers?'],
    [
      'tiers: { a: 1/1s }\nqqqqqq: 1',
      '2:1 qqqqqq: "qqqqqq" is unknown. Known here: $schema, listen',
    ],
    [
      'tiers: { free: 1/1s }\ndefaultTier: fre',
      '2:14 defaultTier: there is no tier "fre". Did you',
    ],
    [
      'tiers: { a: 1/1s }\nclients:\n  bob: pro',
      '3:8 clients.bob: there is no tier "pro". Known: a.',
    ],
    [
      'tiers: { a: 1/1s }\ntiers: { b: 1/1s }',
      '2:1 tiers: "tiers" appears twice, first on line 1.',
    ],
    ['tiers: { a: 1/1s }\nstore: mysql://x', '2:8 store: must be memory, or a URL'],
    [
      'tiers: { a: 1/1s }\nstore: { maxKey: 5 }',
      '2:10 store.maxKey: "maxKey" is unknown. Did you mean maxKeys?',
    ],
    ['tiers: { a: 1/1s }\nstore: { maxKeys: 0.5 }', '2:19 store.maxKeys: must be a whole number'],
    [
      'tiers: { a: 1/1s }\nstore: { url: redis://a, cluster: [redis://b] }',
      '2:35 store.cluster: `url` is',
    ],
    ['tiers: { a: 1/1s }\nlisten: 70000', '2:9 listen: must be'],
    ['tiers: { a: 1/1s }\nlisten: a:b', '2:9 listen: must be a port, or a host and a port'],
    ['tiers: { a: 1/1s }\napi: 8080', '2:6 api: is the same as `listen`, 127.0.0.1:8080.'],
    ['tiers: { a: 1/1s }\nkey: [cookie]', '2:7 key[0]: must be address, route, jwt, header'],
    ['tiers: { a: 1/1s }\nkey: [route, jwt]', '2:6 key: the key `jwt` needs settings'],
    [
      'tiers: { a: 1/1s }\njwt: { issuer: me }',
      '2:6 jwt: must have exactly one of jwks, secret and',
    ],
    [
      'tiers: { a: 1/1s }\njwt: { publicKey: "-----BEGIN PUBLIC KEY-----" }',
      '2:19 jwt.publicKey: must be a public key in PEM',
    ],
    ['tiers: { a: 1/1s }\njwt: { jwks: ftp://x }', '2:14 jwt.jwks: must be a URL such as'],
    ['tiers: { a: 1/1s }\nassignments: redis', '2:14 assignments: the store is not in Redis.'],
    [
      'tiers: { a: 1/1s }\ndecisionLog: { file: x, maxBytes: 5 }',
      '2:35 decisionLog.maxBytes: must be a whole number of bytes from 1048576',
    ],
    ['tiers: { a: 1/1s }\ntrustProxy: [10.0.0.0/33]', '2:14 trustProxy[0]: must be an IP address'],
    ['tiers: { a: 1/1s }\ndenyList: [localhost]', '2:12 denyList[0]: must be an IP address'],
    ['tiers: { a: 1/1s }\nheaders: [y]', '2:11 headers[0]: must be x, draft-6'],
    ['tiers: { a: 1/1s }\nupstreams: { m: http://a/b }', '2:17 upstreams.m: must be echo, or http'],
    ['tiers: { a: 1/1s }\nadmin: { tokens: [1234] }', '2:19 admin.tokens[0]: must be a token'],
    ['tiers: { a: 1/1s }\nroutes: [{ name: x }]', '2:10 routes[0].path: is missing'],
    [
      'tiers: { a: 1/1s }\nlimits: { connections: many }',
      '2:24 limits.connections: must be a whole',
    ],
    ['tiers: { a: 1/1s }\na b: 1\n"c.d": 1', '2:1 ["a b"]: "a b" is unknown'],
    ['tiers: { a: 1/1s }\n  bad: 1', '2:1 : this is not YAML'],
    ['tiers: { a: 1/1s }\n---\ntiers: {}', '2:1 : a second document begins here'],
    ['tiers: { a: !secret 1/1s }', '1:13 : this is not YAML: Unresolved tag'],
    ['tiers: { a: *b }', '1:13 tiers.a: no value before this has the anchor &b'],
  ])('says where the mistake is in %j', (text, expected) => {
    expect(problemsOf(text)[0]).toContain(expected)
  })

  it.each([
    ['path: search', 'path: must be a decoded path'],
    ['path: /a/**/b', 'path: must be a decoded path'],
    ['path: /a*', 'path: must be a decoded path'],
    ['path: /a;b=1/c', 'path: must be a decoded path that begins with /, without ;parameters'],
    ['path: /a, upstream: x', 'upstream: there is no upstream "x". None is defined.'],
    ['path: /a, methods: GET', 'methods: must be a list of methods'],
    ["path: /a, host: 'b:80'", 'host: must be a host without a port'],
    ['path: /a, open: true, rules: 1/1s', 'open: an open route has no limit'],
    [
      'path: /a, cost: 2',
      'cost: is 2, but the rule "token-bucket" (1 units) admits at most 1 at once',
    ],
    ['path: /a, match: { headers: { b: 1 } }', 'match.headers.b: must be a string'],
    ['path: /a, match: { headers: { "b c": x } }', 'match.headers["b c"]: must be the name'],
    [`path: /${'a'.repeat(64)}`, 'path: is too long to serve as the name'],
  ])('says what is wrong with a route { %s }', (route, expected) => {
    const [problem] = problemsOf(`tiers: { a: 1/1s }\nroutes:\n  - { ${route} }`)
    expect(problem).toMatch(/^3:\d+ routes\[0\]\./)
    expect(problem).toContain(expected)
  })

  it('requires different route names and reachable routes', () => {
    const text = 'tiers: { a: 1/1s }\nroutes:\n- path: /a\n- path: /a\n- path: /**\n- path: /b'
    expect(problemsOf(text)).toEqual([
      '4:9 routes[1].path: routes[0] has the same name "/a". Give one of them another `name`.',
      '6:9 routes[3].path: is never reached: routes[2] above it matches every request. Move it up.',
    ])
  })

  it('reports all problems at once, in the order of lines', () => {
    const text =
      'listen: x\ntiers: { a: nope }\ndefaultTier: b\nroutes:\n- path: a\n  upstream: u\n'
    expect(problemsOf(text).map((line) => line.split(': ')[0])).toEqual([
      '1:9 listen',
      '2:13 tiers.a',
      '3:14 defaultTier',
      '5:9 routes[0].path',
      '6:13 routes[0].upstream',
    ])
  })
})

describe('variables', () => {
  const D = '$'
  it('must be set, and have valid names', () => {
    expect(problemsOf(`tiers: { a: 1/1s }\nlisten: ${D}{NOPE}`)).toEqual([
      '2:9 listen: the environment variable NOPE is not set. Set it, or write the value here.',
    ])
    expect(problemsOf(`tiers: { a: 1/1s }\nlisten: ${D}{constructor}`)[0]).toContain('is not set')
    expect(problemsOf(`tiers: { a: 1/1s }\nlisten: ${D}{a b}`)[0]).toContain(
      'cannot read a variable',
    )
    expect(problemsOf(`tiers: { a: 1/1s }\nlisten: '${D}{PORT'`)[0]).toContain('cannot read a')
  })

  it('are not replaced twice, and $$ escapes the characters', () => {
    const text = `tiers: { a: 1/1s }\nstore: { prefix: "${D}{OUTER}" }`
    expect(readConfig(text, 'x', { OUTER: '$INNER' }).store.prefix).toBe('$INNER')
    const route = `tiers: { a: 1/1s }\nroutes: [{ path: "/${D}${D}{PORT}" }]`
    expect(readConfig(route, 'x', env).routes[0].path).toBe(`/${D}{PORT}`)
  })

  it('do not show up in messages, nor do tokens and passwords', () => {
    const text = `tiers: { a: 1/1s }\nadmin: { tokens: ["${D}{SHORT}", tooshort, { token: tiny }] }
store: ftp://user:hunter2@host
jwt: { secret: too-weak-a-secret }
limits: { connections: "${D}{SHORT}" }`
    const all = problemsOf(text)
    expect(all).toHaveLength(6)
    expect(all.join()).not.toMatch(/short-secret|tooshort|tiny|hunter2|too-weak/)
    expect(all[5]).toContain('variables are always strings')
  })
})
