import { parseRule, type Rule, SluiceError } from 'sluice'

/**
 * serviceRule parses a rule as `parseRule` does, and throws where the service does not support it:
 * its rules always count clients (no `by`), and callers of `/v1/check` never release units.
 */
export function serviceRule(text: string): Rule {
  const rule = parseRule(text)
  if (rule.by === undefined && !rule.algorithm.holds) return rule
  throw new SluiceError(
    'SLUICE_RULE_UNSUPPORTED',
    rule.by === undefined
      ? `rule "${rule.name}": the service does not support concurrency. Use a rate such as '100/1m', or the library.`
      : `rule "${rule.name}": rules of the service count clients. Remove \`by ${rule.by}\`.`,
  )
}
