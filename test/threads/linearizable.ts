import type { Rule } from 'sluice'
import { createModel, type Model } from 'sluice/testing'

/** Call is one call of a recorded history: its start, its end and its answer. */
export interface Call {
  readonly verb: 'check' | 'peek' | 'charge' | 'refund' | 'block' | 'unblock' | 'reset'
  readonly key: string
  readonly cost: number
  readonly began: number
  readonly ended: number
  readonly answer: unknown
}

/**
 * linearization finds an order of the calls, all at the same instant, in which the reference model
 * gives each the same answer, and in which no call comes before one that had ended when it
 * began. Without such an order it returns undefined: the store did not decide atomically.
 */
export function linearization(
  calls: readonly Call[],
  rules: readonly Rule[],
  nowUs: number,
): readonly Call[] | undefined {
  const seen = new Set<string>()

  function extend(order: readonly Call[]): readonly Call[] | undefined {
    if (order.length === calls.length) return order
    const left = calls.filter((call) => !order.includes(call))
    const firstEnd = Math.min(...left.map((call) => call.ended))
    for (const call of left) {
      if (call.began > firstEnd) continue
      const next = [...order, call]
      const model = createModel()
      const answers = next.map((each) => play(model, rules, each, nowUs))
      if (JSON.stringify(answers.at(-1)) !== JSON.stringify(call.answer)) continue
      // Memoize: the same calls in another order with the same resulting state lead to the same end.
      const after = model.decide(call.key, rules, 0, nowUs, false)
      const done = calls.map((each) => Number(next.includes(each))).join('')
      const state = `${done} ${JSON.stringify(after)}`
      if (seen.has(state)) continue
      seen.add(state)
      const found = extend(next)
      if (found) return found
    }
    return undefined
  }
  return extend([])
}

function play(model: Model, rules: readonly Rule[], call: Call, nowUs: number): unknown {
  const { verb, key, cost } = call
  if (verb === 'check' || verb === 'peek') {
    return model.decide(key, rules, cost, nowUs, verb === 'check')
  }
  if (verb === 'charge' || verb === 'refund') return model[verb](key, rules, cost, nowUs)
  if (verb === 'block') return model.block(key, nowUs + 1_000_000)
  return model[verb](key)
}
