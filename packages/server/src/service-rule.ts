import { parseRule, type Rule, SluiceError } from 'sluice'

/**
 * serviceRule reads a rule as `parseRule` does, and throws where the service cannot keep it: its rules
 * count clients, and nothing tells it when an answer of `/v1/check` has been used.
 */
export function serviceRule(text: string): Rule {
  const rule = parseRule(text)
  if (rule.by === undefined && !rule.algorithm.holds) return rule
  throw new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    rule.by === undefined
      ? `rule "${rule.name}": the service does not hold units. Use a rate such as '100/1m', or the library.`
      : `rule "${rule.name}": rules of the service count the client. Leave out \`by ${rule.by}\`.`,
  )
}
