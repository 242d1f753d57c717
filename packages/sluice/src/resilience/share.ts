import { CENTURY_US } from '../duration.ts'
import type { Rule } from '../rule.ts'

/**
 * shareOf is the part of a rule that one node of a fleet keeps by itself: the capacity divided, at
 * least 1, at exactly limit / (per · fleetSize). A window is as long as its units take at that rate.
 */
export function shareOf(rule: Rule, fleetSize: number): Rule {
  if (fleetSize === 1 || rule.capacity === Number.POSITIVE_INFINITY) return rule
  const capacity = Math.max(1, Math.floor(rule.capacity / fleetSize))
  const rest = rule.gapRest * fleetSize
  const gapUs = rule.gapUs * fleetSize + Math.floor(rest / rule.gapParts)
  if (gapUs > CENTURY_US) return centuryOf(rule)
  const gapRest = rest % rule.gapParts
  const fullUs = capacity * gapUs + Math.floor((capacity * gapRest) / rule.gapParts)
  const fullRest = (capacity * gapRest) % rule.gapParts
  // A log counts in every interval, so its window must not become shorter.
  const sharedUs = fullUs + Math.sign(fullRest)
  const perUs = rule.algorithm.grows ? Math.max(sharedUs, rule.perUs) : sharedUs
  return Object.freeze({
    ...rule,
    limit: capacity,
    perUs,
    capacity,
    gapUs,
    gapRest,
    fullUs,
    fullRest,
  })
}

/** One unit in a hundred years: what is left of a slow rule in a large fleet. */
function centuryOf(rule: Rule): Rule {
  const one = { limit: 1, capacity: 1, gapRest: 0, fullRest: 0 }
  return Object.freeze({
    ...rule,
    ...one,
    perUs: CENTURY_US,
    gapUs: CENTURY_US,
    gapParts: 1,
    fullUs: CENTURY_US,
  })
}
