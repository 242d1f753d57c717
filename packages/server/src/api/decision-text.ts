import type { Decision } from 'sluice'

/**
 * decisionText is what `JSON.stringify` makes of a decision, in half of the time: it is most of what
 * an answer to `POST /v1/check` takes.
 */
export function decisionText(decision: Decision): string {
  const { allowed, rules, source } = decision
  let list = ''
  for (let i = 0; i < rules.length; i += 1) {
    const { rule, nextAfterMs, delayMs } = rules[i]
    list += `${i === 0 ? '' : ','}{"rule":${quoted(rule)},${figures(rules[i])},"nextAfterMs":${nextAfterMs},"delayMs":${delayMs}}`
  }
  return `{"allowed":${allowed},${figures(decision)},"delayMs":${decision.delayMs},"rule":${quoted(decision.rule)},"rules":[${list}],"source":"${source}"}`
}

type Figures = Omit<Decision['rules'][number], 'rule' | 'nextAfterMs' | 'delayMs'>

function figures({ capacity, remaining, retryAfterMs, resetAfterMs }: Figures): string {
  return `"capacity":${whole(capacity)},"remaining":${whole(remaining)},"retryAfterMs":${retryAfterMs},"resetAfterMs":${resetAfterMs}`
}

/** JSON has no infinity. */
function whole(units: number): number | null {
  return units === Number.POSITIVE_INFINITY ? null : units
}

const texts = new Map<string, string>()
const MOST_TEXTS = 1_000

/** Rules have few names. */
function quoted(name: string): string {
  const known = texts.get(name)
  if (known !== undefined) return known
  if (texts.size >= MOST_TEXTS) texts.clear()
  const text = JSON.stringify(name)
  texts.set(name, text)
  return text
}
