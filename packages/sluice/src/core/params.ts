import { MOST_UNITS } from './cost.ts'
import { type ErrorCode, SluiceError, shown } from './errors.ts'
import { checkWhole } from './options.ts'

/** Params are the values of a rule's own parameters, checked and complete. */
export type Params = Readonly<Record<string, number | string>>

/**
 * Param is a parameter of an algorithm besides `limit` and `per`. Factories, rule texts, remote
 * stores and forms all read it from here.
 */
export interface Param {
  /** Whether a rule's text has a whole number or a word for it. */
  readonly kind: 'whole' | 'word'
  /** The words to choose from, where there is a fixed list. */
  readonly choices: readonly string[] | undefined
  /** Its value where it is left out. */
  fallback(limit: number): number | string
  /**
   * Gives the value back if it is valid, and throws otherwise. A word has no white space. `params` has
   * the parameters declared before this one, and `per` where that is a word.
   */
  check(where: string, value: unknown, params: Params): number | string
}

interface WholeOptions {
  readonly least?: number
  readonly most?: number
  /** What it is where it is left out. Default: the rule's limit. */
  readonly fallback?: number
  readonly code?: ErrorCode
}

/** wholeParam is a whole number, by default from 0 to 10^12. */
export function wholeParam(options: WholeOptions = {}): Param {
  const { least = 0, most = MOST_UNITS, fallback, code } = options
  return {
    kind: 'whole',
    choices: undefined,
    fallback: (limit) => fallback ?? limit,
    check: (where, value) => checkWhole(where, value, least, most, code),
  }
}

/** choiceParam is one of these words; the first is what it is where it is left out. */
export function choiceParam(choices: readonly [string, ...string[]]): Param {
  return {
    kind: 'word',
    choices,
    fallback: () => choices[0],
    check(where, value) {
      if (typeof value === 'string' && choices.includes(value)) return value
      const list = choices.map((choice) => `'${choice}'`).join(' or ')
      throw new SluiceError('SLUICE_OPTION', `${where} must be ${list}, got ${shown(value)}.`)
    },
  }
}
