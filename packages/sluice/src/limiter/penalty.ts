import { blocksText, penaltyRule } from '../algorithms/penalty.ts'
import type { Duration } from '../core/duration.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { checkOptions } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import type { Fields } from './fields.ts'

/** PenaltyOptions block a key that is refused too often, for longer each time. */
export interface PenaltyOptions {
  /**
   * For keys with fields: the field that is blocked. Only refusals by rules of that field count, so
   * that a full rule of another field, or a global one, blocks no key.
   */
  readonly by?: string
  /** How many refusals within `within` block the key: 1 to 1,000,000. */
  readonly after: number
  /** The time within which these refusals must occur. */
  readonly within: Duration
  /**
   * The duration of the first block, the second, and so on; the last one repeats. A key starts with
   * the first duration again ten block durations after its last block, and at least `within` after
   * it.
   */
  readonly block: Duration | readonly Duration[]
}

/** penaltyOf returns the rule that counts refusals; undefined without a penalty. */
export function penaltyOf(options: unknown, fields: Fields | undefined): Rule | undefined {
  if (options === undefined) return undefined
  checkOptions('penalty', options, ['by', 'after', 'within', 'block'])
  const { by, after, within, block } = options as PenaltyOptions
  checkField(by, fields)
  const blocks = Array.isArray(block) ? block : [block]
  if (blocks.length === 0 || blocks.length > 8) {
    throw new SluiceError('SLUICE_OPTION', 'penalty: block must be 1 to 8 durations.')
  }
  const text = blocksText('penalty: block', blocks)
  return penaltyRule({ limit: after, per: within, block: text, by })
}

function checkField(by: unknown, fields: Fields | undefined): void {
  if (fields ? fields.names.includes(by as string) && by !== 'global' : by === undefined) return
  throw new SluiceError(
    'SLUICE_OPTION',
    fields
      ? `penalty: by must be a field of the key that rules count, got ${shown(by)}.`
      : `penalty: by is for keys with fields, got ${shown(by)}.`,
  )
}
