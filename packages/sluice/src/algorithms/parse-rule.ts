import { SluiceError, shown } from '../core/errors.ts'
import type { Rule } from '../core/rule.ts'
import { fixedWindow } from './fixed-window.ts'
import { gcra } from './gcra.ts'
import { leakyBucket } from './leaky-bucket.ts'
import { slidingWindowCounter } from './sliding-window-counter.ts'
import { slidingWindowLog } from './sliding-window-log.ts'
import { tokenBucket } from './token-bucket.ts'
import { unlimited } from './unlimited.ts'

type Options = { limit: number; per: string; [name: string]: unknown }

const factories: Readonly<Record<string, (options: never) => Rule>> = {
  'fixed-window': fixedWindow,
  'sliding-window-log': slidingWindowLog,
  'sliding-window-counter': slidingWindowCounter,
  'token-bucket': tokenBucket,
  gcra,
  'leaky-bucket': leakyBucket,
}

const GRAMMAR =
  "Write LIMIT/PER, then any of `burst N`, `queue N`, `align clock`, `name NAME` and an algorithm's " +
  `name (${Object.keys(factories).join(', ')}; default token-bucket), such as '100/1m burst 20', ` +
  "or 'unlimited'."

/**
 * parseRule reads a rule from a text, for configuration files:
 * `'100/1m burst 20 token-bucket'`, `'5/1s queue 10 leaky-bucket name api'`, `'unlimited'`.
 * It gives what the factory of that name gives, and throws what that throws.
 */
export function parseRule(text: string): Rule {
  if (typeof text !== 'string') fail(text, 'it is not a string')
  const [figures, ...words] = text.trim().split(/[ \t]+/)
  if (figures === 'unlimited') {
    if (words.length === 0) return unlimited()
    if (words.length === 2 && words[0] === 'name') return unlimited({ name: words[1] })
    fail(text, '`unlimited` takes only a name')
  }
  const found = /^(\d{1,15})\/(\S+)$/.exec(figures)
  if (!found) fail(text, `${shown(figures)} is not LIMIT/PER`)
  const options: Options = { limit: Number(found[1]), per: found[2] }
  let algorithm: string | undefined
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i]
    if (Object.hasOwn(factories, word)) {
      if (algorithm) fail(text, `it names two algorithms, ${algorithm} and ${word}`)
      algorithm = word
      continue
    }
    if (!['burst', 'queue', 'align', 'name'].includes(word)) fail(text, `${shown(word)} is unknown`)
    i += 1
    if (i === words.length) fail(text, `\`${word}\` needs a value`)
    if (word in options) fail(text, `\`${word}\` is given twice`)
    options[word] = word === 'burst' || word === 'queue' ? whole(text, word, words[i]) : words[i]
  }
  try {
    return factories[algorithm ?? 'token-bucket'](options as never)
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    const message = `cannot read the rule ${shown(text)}: ${error.message}`
    throw new SluiceError(error.code, message, { cause: error })
  }
}

function whole(text: string, word: string, value: string): number {
  if (/^\d{1,15}$/.test(value)) return Number(value)
  fail(text, `\`${word}\` must be a whole number, got ${shown(value)}`)
}

function fail(text: unknown, why: string): never {
  throw new SluiceError(
    'SLUICE_RULE_SYNTAX',
    `cannot read the rule ${shown(text)}: ${why}. ${GRAMMAR}`,
  )
}
