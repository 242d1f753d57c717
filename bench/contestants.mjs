// @ts-check

/**
 * @typedef {object} Contestant
 * @property {string} name its name for `--only`; its adapter is `contestants/<name>.mjs`
 * @property {string} label its name in tables
 * @property {'sluice' | 'peer' | 'baseline'} group
 * @property {string} [package] the npm package behind it
 * @property {false} [decides] false for a baseline that admits everything and is not verified
 * @property {readonly string[]} [except] workloads that it skips, to save time
 * @property {string} [note] a note for readers of its results
 */

/**
 * contestants lists what is measured, Sluice first. The peers are set up as in their READMEs, and
 * their stores are called directly: without HTTP, headers or key generators.
 * @type {readonly Contestant[]}
 */
export const contestants = [
  { name: 'sluice-compact', label: 'sluice compactStore allow', group: 'sluice' },
  {
    name: 'sluice-compact-check',
    label: 'sluice compactStore check',
    group: 'sluice',
    except: ['zipf', 'flood'],
  },
  {
    name: 'sluice-shared',
    label: 'sluice sharedMemoryStore allow',
    group: 'sluice',
    note: 'used by one thread here; its buffer has its full size from the start',
  },
  { name: 'sluice-memory', label: 'sluice memoryStore allow', group: 'sluice' },
  {
    name: 'sluice-memory-check',
    label: 'sluice memoryStore check',
    group: 'sluice',
    except: ['zipf', 'flood'],
  },
  {
    name: 'hitlimit',
    label: '@joint-ops/hitlimit',
    group: 'peer',
    package: '@joint-ops/hitlimit',
  },
  {
    name: 'hono-rate-limiter',
    label: 'hono-rate-limiter',
    group: 'peer',
    package: 'hono-rate-limiter',
    note: 'its store answers at once; its middleware awaits the answer, which is not counted here',
  },
  {
    name: 'fastify-rate-limit',
    label: '@fastify/rate-limit',
    group: 'peer',
    package: '@fastify/rate-limit',
    note: 'keeps 5,000 keys unless told otherwise; here `cache` is the maxKeys of the workload',
  },
  {
    name: 'limiter',
    label: 'limiter',
    group: 'peer',
    package: 'limiter',
    note: 'a TokenBucket for each key, in a Map; nothing ever leaves that Map',
  },
  {
    name: 'express-rate-limit',
    label: 'express-rate-limit',
    group: 'peer',
    package: 'express-rate-limit',
  },
  {
    name: 'rate-limiter-flexible',
    label: 'rate-limiter-flexible',
    group: 'peer',
    package: 'rate-limiter-flexible',
    note: 'one timer for each key; a refusal is a rejected promise',
  },
  {
    name: 'nestjs-throttler',
    label: '@nestjs/throttler',
    group: 'peer',
    package: '@nestjs/throttler',
    note:
      'keeps the instant of every hit and filters them all at each call, so a key costs more with ' +
      'every request that it was allowed: the hot figure depends on how long one measures',
  },
  { name: 'textbook', label: 'textbook Map of buckets', group: 'baseline' },
  {
    name: 'floor',
    label: 'floor: Map get + set',
    group: 'baseline',
    decides: false,
    note: 'no limiter: one number for each key in a Map, read and written, and no clock',
  },
  {
    name: 'key-only',
    label: 'the loop and the key',
    group: 'baseline',
    decides: false,
    note: 'what every row pays for building the key and going round the loop',
  },
]
