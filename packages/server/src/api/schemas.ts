import { MOST_UNITS } from '../most-units.ts'

// JSON schemas of what `POST /v1/check`, `/v1/charge` and `/v1/refund` take and answer.

const key = { type: 'string', minLength: 1, maxLength: 1_024 }
const cost = { type: 'integer', minimum: 0, maximum: MOST_UNITS }
const whose = {
  tier: { type: 'string', description: 'in place of the tier of the key' },
  route: { type: 'string', description: 'a route with rules of its own; not with a tier' },
}
const exactly = (required: readonly string[], properties: object) => ({
  type: 'object',
  required,
  additionalProperties: false,
  properties,
})

const oneCheck = exactly(['key'], { key, cost: { ...cost, default: 1 }, ...whose })
const manyChecks = exactly(['checks'], {
  checks: { type: 'array', maxItems: 1_000, items: oneCheck },
})

const units = (description: string) => ({ type: ['integer', 'null'], description })
const durationMs = (description: string) => ({ type: 'number', minimum: 0, description })
const figures = {
  capacity: units('the most that can ever be left; null where there is no limit'),
  remaining: units('what is left; null where there is no limit'),
  retryAfterMs: {
    ...durationMs('when the same request passes; null if it never does'),
    type: ['number', 'null'],
  },
  resetAfterMs: durationMs('when the key is full again'),
  delayMs: durationMs('how long to hold an allowed request (leaky bucket); 0 in shadow mode'),
}
const ofRule = exactly(['rule', ...Object.keys(figures), 'nextAfterMs'], {
  rule: { type: 'string' },
  ...figures,
  nextAfterMs: durationMs('when `remaining` grows by one; 0 where the rule is full'),
})
const decision = exactly(['allowed', ...Object.keys(figures), 'rule', 'rules', 'source'], {
  allowed: { type: 'boolean', description: 'whether the request may go ahead' },
  ...figures,
  rule: { type: 'string', description: 'the deciding rule' },
  rules: { type: 'array', items: ofRule },
  source: { enum: ['store', 'cache', 'lease', 'local', 'open', 'closed', 'blocked'] },
  never: {
    const: true,
    description: 'the cost is above the capacity: no waiting helps, and retryAfterMs is null',
  },
  shadow: {
    const: true,
    description: 'the route is in shadow mode: only a block makes `allowed` false',
  },
  wouldAllow: {
    type: 'boolean',
    description: 'what would be decided without shadow mode; goes with `shadow`',
  },
})

/** checkBody is what `POST /v1/check` takes. */
export const checkBody = { oneOf: [oneCheck, manyChecks] }

/** checkAnswer is what it answers, by what it took. */
export const checkAnswer = {
  oneOf: [decision, exactly(['decisions'], { decisions: { type: 'array', items: decision } })],
}

/** settleBody is what `POST /v1/charge` and `POST /v1/refund` take. */
export const settleBody = exactly(['key', 'cost'], { key, cost, ...whose })

/** chargeAnswer says what was charged. */
export const chargeAnswer = exactly(['key', 'charged'], { key, charged: cost })

/** refundAnswer says what was given back, as far as the key had used it. */
export const refundAnswer = exactly(['key', 'refunded'], { key, refunded: cost })
