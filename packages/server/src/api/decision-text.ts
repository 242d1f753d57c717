import type { Decision } from 'sluice'
import type { Answer } from './answer.ts'

/**
 * decisionText returns what `JSON.stringify` makes of an answer in half the time, which is most of
 * the time that `POST /v1/check` takes.
 */
export function decisionText(answer: Answer): string {
  const { allowed, rules, source } = answer
  let list = ''
  for (let i = 0; i < rules.length; i += 1) {
    const { rule, nextAfterMs, delayMs } = rules[i]
    list += `${i === 0 ? '' : ','}{"rule":${quoted(rule)},${figures(rules[i])},"nextAfterMs":${nextAfterMs},"delayMs":${delayMs}}`
  }
  return `{"allowed":${allowed},${figures(answer)},"delayMs":${answer.delayMs},"rule":${quoted(answer.rule)},"rules":[${list}],"source":"${source}"${marks(answer)}}`
}

function marks({ shadow, wouldAllow, never }: Answer): string {
  const inShadow = shadow ? `,"shadow":true,"wouldAllow":${wouldAllow}` : ''
  return never ? `,"never":true${inShadow}` : inShadow
}

type Figures = Omit<Decision['rules'][number], 'rule' | 'nextAfterMs' | 'delayMs'>

function figures({ capacity, remaining, retryAfterMs, resetAfterMs }: Figures): string {
  return `"capacity":${finite(capacity)},"remaining":${finite(remaining)},"retryAfterMs":${finite(retryAfterMs)},"resetAfterMs":${resetAfterMs}`
}

/** JSON has no infinity, so it becomes null. */
function finite(value: number): number | null {
  return value === Number.POSITIVE_INFINITY ? null : value
}

const texts = new Map<string, string>()
const MOST_TEXTS = 1_000

/** Cached, since rules have few names. */
function quoted(name: string): string {
  const known = texts.get(name)
  if (known !== undefined) return known
  if (texts.size >= MOST_TEXTS) texts.clear()
  const text = JSON.stringify(name)
  texts.set(name, text)
  return text
}
