import { completeAlgorithm } from '../core/algorithm.ts'
import { checkOptions } from '../core/options.ts'
import { checkName, type Rule } from '../core/rule.ts'

const algorithm = completeAlgorithm({
  name: 'unlimited',
  cells: () => 0,
  waitUs: () => 0,
  spend() {},
  remaining: () => Number.POSITIVE_INFINITY,
  freshAtUs: () => 0,
  merge() {},
})

/** unlimited always allows and keeps no state: for internal clients, or to switch a rule off. */
export function unlimited(options: { readonly name?: string } = {}): Rule {
  checkOptions('unlimited rule', options, ['name'])
  const { name = 'unlimited' } = options
  checkName('unlimited rule: name', name)
  return Object.freeze({
    name,
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
  })
}
