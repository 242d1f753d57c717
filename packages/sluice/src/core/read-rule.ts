import type { Algorithm } from './algorithm.ts'
import { SluiceError, shown } from './errors.ts'
import { defineRule, type Rule } from './rule.ts'
import { USUAL } from './rule-text.ts'

/** Aliases for the names of algorithms that read better in text. */
const ALIASES: Readonly<Record<string, string>> = { concurrent: 'concurrency' }

/**
 * readRule parses a rule's text: `LIMIT/PER`, or `LIMIT` for an algorithm that holds units; then,
 * in any order, parameters with their values, `name NAME`, `by FIELD`, and the name of one of these
 * algorithms. The default algorithm is the one with PER among its `periods`, else the token bucket.
 * `name` is the default name.
 */
export function readRule(text: string, algorithms: readonly Algorithm[], name?: string): Rule {
  const fail = (why: string): never => {
    throw new SluiceError(
      'SLUICE_RULE_SYNTAX',
      `cannot read the rule ${shown(text)}: ${why}. ${grammar(algorithms)}`,
    )
  }
  if (typeof text !== 'string') return fail('it is not a string')
  const [rate, ...words] = text.trim().split(/[ \t]+/)
  const isHeld = words.includes('hold')
  const found = /^(\d{1,15})(?:\/(\S+))?$/.exec(rate)
  if (!found || (!found[2] && !isHeld)) return fail(`${shown(rate)} is not LIMIT/PER`)
  const options: Record<string, unknown> = { limit: Number(found[1]) }
  if (found[2]) options.per = found[2]
  if (name !== undefined) options.name = name
  let algorithm: Algorithm | undefined
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i]
    const named = algorithms.find(({ name }) => name === (ALIASES[word] ?? word))
    if (named) {
      if (algorithm) fail(`it names two algorithms, ${algorithm.name} and ${word}`)
      algorithm = named
      continue
    }
    const kind = kindOf(word, algorithms) ?? fail(`${shown(word)} is unknown`)
    i += 1
    if (i === words.length) fail(`\`${word}\` needs a value`)
    if (Object.hasOwn(options, word)) fail(`\`${word}\` is given twice`)
    if (kind === 'whole' && !/^\d{1,15}$/.test(words[i])) {
      fail(`\`${word}\` must be a whole number, got ${shown(words[i])}`)
    }
    options[word] = kind === 'whole' ? Number(words[i]) : words[i]
  }
  algorithm ??=
    algorithms.find(({ periods }) => periods && Object.hasOwn(periods, found[2])) ??
    algorithms.find(({ name }) => name === USUAL) ??
    fail('it names no algorithm')
  try {
    return defineRule(algorithm, options as never)
  } catch (error) {
    if (!SluiceError.is(error)) throw error
    const message = `cannot read the rule ${shown(text)}: ${error.message}`
    throw new SluiceError(error.code, message, { cause: error })
  }
}

/** Returns the kind of value after a word of a rule's text. */
function kindOf(word: string, algorithms: readonly Algorithm[]): 'whole' | 'word' | undefined {
  if (word === 'name' || word === 'by') return 'word'
  if (algorithms.some(({ span }) => span === word)) return 'word'
  for (const { params } of algorithms) if (Object.hasOwn(params, word)) return params[word].kind
  return undefined
}

function grammar(algorithms: readonly Algorithm[]): string {
  const params = algorithms.flatMap((each) =>
    Object.entries(each.params).map(([name, { kind, choices }]) => {
      return `\`${name} ${choices?.join('|') ?? (kind === 'whole' ? 'N' : name.toUpperCase())}\``
    }),
  )
  const names = algorithms.map(({ name }) => name).join(', ')
  return (
    `Write LIMIT/PER, then any of ${[...new Set(params)].join(', ')}, \`name NAME\`, \`by FIELD\` and ` +
    `an algorithm's name (${names}; default ${USUAL}), such as '100/1m burst 20'; ` +
    "or '10 concurrent hold 30s', or 'unlimited'."
  )
}
