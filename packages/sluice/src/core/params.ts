import { MOST_UNITS } from './cost.ts'
import { type ErrorCode, SluiceError, shown } from './errors.ts'
import { checkWhole } from './options.ts'

/** Params are the values of a rule's parameters, checked and complete. */
export type Params = Readonly<Record<string, number | string>>

/**
 * Param is a parameter of an algorithm besides `limit` and `per`. Factories, rule texts, remote
 * stores and forms all read it from here.
 */
export interface Param {
  /** Whether its value is a whole number or a word. */
  readonly kind: 'whole' | 'word'
  /** The allowed words, if there is a fixed list. */
  readonly choices: readonly string[] | undefined
  /** Returns the default value. */
  fallback(limit: number): number | string
  /**
   * Returns the value if it is valid, and throws otherwise. A word has no white space. `params` has
   * the parameters declared before this one, and `per` if that is a word.
   */
  check(where: string, value: unknown, params: Params): number | string
}

interface WholeOptions {
  readonly least?: number
  readonly most?: number
  /** The default value. If missing: the rule's limit. */
  readonly fallback?: number
  readonly code?: ErrorCode
}

/** wholeParam creates a parameter with whole numbers, by default from 0 to 10^12. */
export function wholeParam(options: WholeOptions = {}): Param {
  const { least = 0, most = MOST_UNITS, fallback, code } = options
  return {
    kind: 'whole',
    choices: undefined,
    fallback: (limit) => fallback ?? limit,
    check: (where, value) => checkWhole(where, value, least, most, code),
  }
}

/** choiceParam creates a parameter with these words. The first is the default. */
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
