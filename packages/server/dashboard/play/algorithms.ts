import {
  fixedWindow,
  gcra,
  leakyBucket,
  type Rule,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from 'sluice'

/** Figures are what a visitor has written for a rule; the library says what is wrong with them. */
export interface Figures {
  readonly limit: string
  readonly per: string
  /** Empty for the default. */
  readonly burst: string
  /** Empty for the default. */
  readonly queue: string
  readonly align: string
}

/** Algorithm is one of the six, and which figures it takes besides limit and per. */
export interface Algorithm {
  readonly name: string
  readonly title: string
  readonly factory: string
  readonly extra: 'burst' | 'queue' | 'align' | undefined
  readonly make: (options: never) => Rule
  readonly promise: string
}

/** algorithms are all six, in the order in which they are shown. */
export const algorithms: readonly Algorithm[] = [
  {
    name: 'token-bucket',
    title: 'Token bucket',
    factory: 'tokenBucket',
    extra: 'burst',
    make: tokenBucket,
    promise: 'A burst at once, then one unit per gap.',
  },
  {
    name: 'gcra',
    title: 'GCRA',
    factory: 'gcra',
    extra: 'burst',
    make: gcra,
    promise: 'The same decisions as the token bucket, by one number.',
  },
  {
    name: 'leaky-bucket',
    title: 'Leaky bucket',
    factory: 'leakyBucket',
    extra: 'queue',
    make: leakyBucket,
    promise:
      'Requests are held, so that they leave evenly. One leaves at once and a queue waits: ' +
      'a queue of 10 takes 11.',
  },
  {
    name: 'fixed-window',
    title: 'Fixed window',
    factory: 'fixedWindow',
    extra: 'align',
    make: fixedWindow,
    promise: 'The limit in each window, and up to twice that across an edge.',
  },
  {
    name: 'sliding-window-counter',
    title: 'Sliding window counter',
    factory: 'slidingWindowCounter',
    extra: undefined,
    make: slidingWindowCounter,
    promise: 'The window before counts for as much as it still reaches.',
  },
  {
    name: 'sliding-window-log',
    title: 'Sliding window log',
    factory: 'slidingWindowLog',
    extra: undefined,
    make: slidingWindowLog,
    promise: 'Never more than the limit in any interval.',
  },
]

/** algorithmOf finds one by its name; the first stands in for one that does not exist. */
export function algorithmOf(name: string): Algorithm {
  return algorithms.find((each) => each.name === name) ?? algorithms[0]
}

/** ruleOf makes the rule, or throws what the library says about the figures. */
export function ruleOf(algorithm: Algorithm, figures: Figures): Rule {
  return algorithm.make(optionsOf(algorithm, figures) as never)
}

/** hasEdges tells whether windows begin at fixed times, the same for all clients. */
export function hasEdges({ name, extra }: Algorithm, { align }: Figures): boolean {
  return name === 'sliding-window-counter' || (extra === 'align' && align === 'clock')
}

/** codeOf is the program that does the same. */
export function codeOf(algorithm: Algorithm, figures: Figures, cost: number): string {
  const options = Object.entries(optionsOf(algorithm, figures)).map(([name, value]) =>
    typeof value === 'string'
      ? `${name}: '${value.replace(/['\\]/g, '\\$&')}'`
      : `${name}: ${value}`,
  )
  const units = cost === 1 ? '' : `, ${cost}`
  // What a leaky bucket lets through has a turn, which somebody has to wait for.
  const call = algorithm.extra === 'queue' ? 'await limiter.wait' : 'limiter.check'
  return `import { createLimiter, ${algorithm.factory} } from 'sluice'

const limiter = createLimiter(${algorithm.factory}({ ${options.join(', ')} }))

const { allowed, retryAfterMs } = ${call}(userId${units})`
}

function optionsOf({ extra }: Algorithm, figures: Figures): Record<string, unknown> {
  const { limit, per, burst, queue, align } = figures
  return {
    limit: numberOf(limit),
    per,
    ...(extra === 'burst' && burst !== '' ? { burst: numberOf(burst) } : {}),
    ...(extra === 'queue' && queue !== '' ? { queue: numberOf(queue) } : {}),
    ...(extra === 'align' ? { align } : {}),
  }
}

/** Nothing is no number, though JavaScript takes it for 0. */
function numberOf(text: string): number {
  return text.trim() === '' ? Number.NaN : Number(text)
}
