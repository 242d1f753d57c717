import {
  fixedWindow,
  gcra,
  leakyBucket,
  type Rule,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from 'sluice'

/** Figures are the inputs for a rule as text; the library validates them. */
export interface Figures {
  readonly limit: string
  readonly per: string
  /** Empty for the default. */
  readonly burst: string
  /** Empty for the default. */
  readonly queue: string
  readonly align: string
}

/** Algorithm is an algorithm of the playground, with its input besides limit and per. */
export interface Algorithm {
  readonly name: string
  readonly title: string
  readonly factory: string
  readonly extra: 'burst' | 'queue' | 'align' | undefined
  readonly make: (options: never) => Rule
  readonly promise: string
}

/** algorithms are listed in the order in which they are shown. */
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
    promise: 'Decides like the token bucket, with a state of one number.',
  },
  {
    name: 'leaky-bucket',
    title: 'Leaky bucket',
    factory: 'leakyBucket',
    extra: 'queue',
    make: leakyBucket,
    promise:
      'Delays requests, so that they leave at an even rate. One leaves at once, the others queue: ' +
      'a queue of 10 admits 11.',
  },
  {
    name: 'fixed-window',
    title: 'Fixed window',
    factory: 'fixedWindow',
    extra: 'align',
    make: fixedWindow,
    promise: 'The limit in each window; up to twice the limit across an edge.',
  },
  {
    name: 'sliding-window-counter',
    title: 'Sliding window counter',
    factory: 'slidingWindowCounter',
    extra: undefined,
    make: slidingWindowCounter,
    promise: 'Weights the previous window by its overlap with the last period.',
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

/** algorithmOf finds an algorithm by its name, or returns the first one. */
export function algorithmOf(name: string): Algorithm {
  return algorithms.find((each) => each.name === name) ?? algorithms[0]
}

/** ruleOf makes the rule, or throws the library's error about the inputs. */
export function ruleOf(algorithm: Algorithm, figures: Figures): Rule {
  return algorithm.make(optionsOf(algorithm, figures) as never)
}

/** hasEdges tells whether windows begin at fixed times, the same for all clients. */
export function hasEdges({ name, extra }: Algorithm, { align }: Figures): boolean {
  return name === 'sliding-window-counter' || (extra === 'align' && align === 'clock')
}

/** codeOf returns a program with the same rule. */
export function codeOf(algorithm: Algorithm, figures: Figures, cost: number): string {
  const options = Object.entries(optionsOf(algorithm, figures)).map(([name, value]) =>
    typeof value === 'string'
      ? `${name}: '${value.replace(/['\\]/g, '\\$&')}'`
      : `${name}: ${value}`,
  )
  const units = cost === 1 ? '' : `, ${cost}`
  // A leaky bucket admits with a delay, so the program has to wait.
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

/** An empty text is NaN, since `Number('')` would be 0. */
function numberOf(text: string): number {
  return text.trim() === '' ? Number.NaN : Number(text)
}
