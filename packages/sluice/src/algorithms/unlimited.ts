import { completeAlgorithm } from '../core/algorithm.ts'
import { checkOptions } from '../core/options.ts'
import { type ByOf, checkBy, checkName, type NameOf, type Rule } from '../core/rule.ts'

const algorithm = completeAlgorithm({
  name: 'unlimited',
  cells: () => 0,
  waitUs: () => 0,
  spend() {},
  remaining: () => Number.POSITIVE_INFINITY,
  freshAtUs: () => 0,
  merge() {},
})

interface UnlimitedOptions {
  readonly name?: string
  readonly by?: string
}

/**
 * unlimited admits every request and keeps no state. Use it for internal clients, or to switch a
 * rule off. Capacity and remaining are `Infinity`.
 */
export function unlimited<const Options extends UnlimitedOptions = Record<never, never>>(
  options: Options = {} as Options,
): Rule<ByOf<Options>, NameOf<Options, 'unlimited'>> {
  checkOptions('unlimited rule', options, ['name', 'by'])
  const { name = 'unlimited', by }: UnlimitedOptions = options
  checkBy('unlimited rule: by', by)
  checkName('unlimited rule: name', name)
  return Object.freeze({
    name,
    by,
    algorithm,
    limit: Number.POSITIVE_INFINITY,
    perUs: 1_000,
    capacity: Number.POSITIVE_INFINITY,
    params: {},
    text: 'unlimited',
    gapUs: 0,
    gapRest: 0,
    gapParts: 1,
    fullUs: 0,
    fullRest: 0,
  }) as Rule<never, never>
}
