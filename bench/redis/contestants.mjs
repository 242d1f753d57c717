// @ts-check
import { createHash } from 'node:crypto'

/**
 * The limiters that are compared on Redis, each set up as in its documentation, all on one ioredis
 * client.
 *
 * @typedef {{ limit: number, perMs: number }} Limit
 * @typedef {(key: string) => Promise<boolean>} Allow whether the key may go ahead
 * @typedef {object} Contestant
 * @property {string} label
 * @property {string} [package]
 * @property {(client: import('ioredis').Redis, limit: Limit) => Promise<Allow>} make
 * @property {(client: import('ioredis').Redis, limit: Limit) => Promise<Allow>} [makeSafe] with its
 *   protection against failures of Redis
 */

/** @type {Record<string, Contestant>} */
export const contestants = {
  sluice: {
    label: 'Sluice',
    make: (client, limit) => sluice(client, limit, {}),
    makeSafe: (client, limit) => sluice(client, limit, {}, 50),
  },
  'sluice-window': {
    label: 'Sluice, fixed window',
    make: (client, limit) => sluice(client, limit, {}, 5_000, ['fixedWindow']),
  },
  'sluice-two-rules': {
    label: 'Sluice, two rules',
    make: (client, limit) => sluice(client, limit, {}, 5_000, ['tokenBucket', 'fixedWindow']),
  },
  'sluice-deny-cache': {
    label: 'Sluice, deny cache',
    make: (client, limit) => sluice(client, limit, { denyCache: { maxKeys: 100_000 } }),
  },
  'sluice-lease': {
    label: 'Sluice, lease of 100',
    make: (client, limit) => sluice(client, limit, { lease: { units: 100 } }),
  },
  'rate-limit-redis': {
    label: 'rate-limit-redis',
    package: 'rate-limit-redis',
    async make(client, { limit, perMs }) {
      const { RedisStore } = await import('rate-limit-redis')
      const store = new RedisStore({
        sendCommand: (/** @type {[string, ...string[]]} */ ...args) =>
          /** @type {any} */ (client.call(...args)),
      })
      store.init(/** @type {any} */ ({ windowMs: perMs }))
      return async (key) => (await store.increment(key)).totalHits <= limit
    },
  },
  'rate-limiter-flexible': {
    label: 'rate-limiter-flexible',
    package: 'rate-limiter-flexible',
    make: (client, limit) => flexible(client, limit, {}),
    async makeSafe(client, limit) {
      const { RateLimiterMemory } = await import('rate-limiter-flexible')
      const points = { points: limit.limit, duration: limit.perMs / 1_000 }
      return flexible(client, limit, { insuranceLimiter: new RateLimiterMemory(points) })
    },
  },
  'rate-limiter-flexible-block': {
    label: 'rate-limiter-flexible, inMemoryBlockOnConsumed',
    package: 'rate-limiter-flexible',
    make: (client, limit) => flexible(client, limit, { inMemoryBlockOnConsumed: limit.limit }),
  },
  upstash: {
    label: '@upstash/ratelimit, token bucket',
    package: '@upstash/ratelimit',
    async make(client, { limit, perMs }) {
      const { Ratelimit } = await import('@upstash/ratelimit')
      const limiter = new Ratelimit({
        redis: /** @type {any} */ (upstashShim(client)),
        limiter: Ratelimit.tokenBucket(limit, `${perMs} ms`, limit),
        ephemeralCache: false,
        timeout: 0,
      })
      return async (key) => (await limiter.limit(key)).success
    },
  },
}

/**
 * The library speaks HTTP to a service; this sends its commands by an ordinary client. Its scripts
 * start with a flag of that service that Redis does not know, which is removed.
 * @param {import('ioredis').Redis} client
 */
function upstashShim(client) {
  /** @type {Map<string, string>} */
  const loaded = new Map()
  return {
    async evalsha(
      /** @type {string} */ sha,
      /** @type {string[]} */ keys,
      /** @type {any[]} */ args,
    ) {
      const own = loaded.get(sha)
      if (!own) throw new Error('NOSCRIPT')
      return client.evalsha(own, keys.length, ...keys, ...args)
    },
    async eval(
      /** @type {string} */ text,
      /** @type {string[]} */ keys,
      /** @type {any[]} */ args,
    ) {
      const plain = text.replace(/^#!.*/, '')
      const own = String(await client.script('LOAD', plain))
      loaded.set(createHash('sha1').update(text).digest('hex'), own)
      return client.evalsha(own, keys.length, ...keys, ...args)
    },
  }
}

/**
 * Makes a Sluice limiter. The default timeout is so long that no call fails while speed is measured.
 * @param {import('ioredis').Redis} client @param {Limit} limit @param {object} options
 * @param {number} [timeoutMs] @param {('tokenBucket' | 'fixedWindow')[]} [rules] names of factories
 */
async function sluice(
  client,
  { limit, perMs },
  options,
  timeoutMs = 5_000,
  rules = ['tokenBucket'],
) {
  const { createLimiter, ...factories } = await import('../../packages/sluice/dist/index.js')
  const { redisStore } = await import('../../packages/sluice/dist/stores/redis/redis.js')
  const store = redisStore(client, options)
  const made = rules.map((name) => factories[name]({ limit, per: perMs }))
  const limiter = createLimiter(made, { store, timeoutMs })
  return async (/** @type {string} */ key) => (await limiter.check(key)).allowed
}

/** @param {import('ioredis').Redis} client @param {Limit} limit @param {object} options */
async function flexible(client, { limit, perMs }, options) {
  const { RateLimiterRedis } = await import('rate-limiter-flexible')
  const limiter = new RateLimiterRedis({
    storeClient: client,
    points: limit,
    duration: perMs / 1_000,
    ...options,
  })
  return (/** @type {string} */ key) =>
    limiter.consume(key).then(
      () => true,
      (/** @type {unknown} */ refused) => {
        if (refused instanceof Error) throw refused
        return false
      },
    )
}
