import { CENTURY_US } from '../core/duration.ts'
import { mulDiv, mulSub } from '../core/exact.ts'
import type { Rule } from '../core/rule.ts'

/**
 * shareOf returns the part of a rule that one node of a fleet enforces alone: the capacity divided
 * by `fleetSize`, rounded down, at least 1. In any interval all nodes together admit at most what
 * the rule does. With more nodes than capacity, they admit at most limit · t / per and one unit per
 * node.
 *
 * Rules that refill continuously do so at exactly limit / (per · fleetSize). Windows keep their
 * length: shorter ones could be used twice within `per`. With more nodes than units, each window
 * has one unit and is longer instead.
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
  // A hold lasts equally long on every node.
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

/** Returns a share of one unit per hundred years, for a slow rule in a large fleet. */
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

/** Returns the text of a share. No other process parses it. */
function textOf({ text }: Rule, fleetSize: number): string {
  return `${text} / ${fleetSize}`
}
