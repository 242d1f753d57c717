import { CENTURY_US } from '../core/duration.ts'
import { mulDiv, mulSub } from '../core/exact.ts'
import type { Rule } from '../core/rule.ts'

/**
 * shareOf is the part of a rule that one node of a fleet keeps by itself: the capacity divided,
 * rounded down, at least 1. In any interval all nodes together admit at most what the rule promises;
 * a fleet with more nodes than the capacity at most limit · t / per, and one unit for each node.
 *
 * Where units flow they do so at exactly limit / (per · fleetSize). A window keeps its length, as two
 * of them and an edge would fit into `per` if it were shorter, unless there are fewer units than
 * nodes: then it has one, and is as long as that takes.
 */
export function shareOf(rule: Rule, fleetSize: number): Rule {
  if (fleetSize === 1 || rule.capacity === Number.POSITIVE_INFINITY) return rule
  const capacity = Math.max(1, Math.floor(rule.capacity / fleetSize))
  const { gapParts } = rule
  const gapCarried = mulDiv(rule.gapRest, fleetSize, gapParts)
  const gapUs = rule.gapUs * fleetSize + gapCarried
  if (gapUs > CENTURY_US) return centuryOf(rule, fleetSize)
  const gapRest = mulSub(rule.gapRest, fleetSize, gapCarried, gapParts)
  const fullCarried = mulDiv(capacity, gapRest, gapParts)
  const fullUs = capacity * gapUs + fullCarried
  const fullRest = mulSub(capacity, gapRest, fullCarried, gapParts)
  const sharedUs = fullUs + Math.sign(fullRest)
  // A hold lasts as long on every node.
  const isLonger = sharedUs > rule.perUs && !rule.algorithm.holds
  return Object.freeze({
    ...rule,
    limit: capacity,
    perUs: rule.algorithm.flows || isLonger ? sharedUs : rule.perUs,
    capacity,
    params: isLonger ? rule.algorithm.sharedParams(rule.params) : rule.params,
    text: textOf(rule, fleetSize),
    gapUs,
    gapRest,
    fullUs,
    fullRest,
  })
}

/** One unit in a hundred years: what is left of a slow rule in a large fleet. */
function centuryOf(rule: Rule, fleetSize: number): Rule {
  const one = { limit: 1, capacity: 1, gapRest: 0, fullRest: 0 }
  return Object.freeze({
    ...rule,
    ...one,
    perUs: CENTURY_US,
    params: rule.algorithm.sharedParams(rule.params),
    text: textOf(rule, fleetSize),
    gapUs: CENTURY_US,
    gapParts: 1,
    fullUs: CENTURY_US,
  })
}

/** A share is kept in this process only, so no other one reads its text. */
function textOf({ text }: Rule, fleetSize: number): string {
  return `${text} / ${fleetSize}`
}
