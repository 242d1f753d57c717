import { MOST_UNITS } from '../most-units.ts'

// JSON schemas of the bodies and responses of `POST /v1/check`, `/v1/charge` and `/v1/refund`.

const key = { type: 'string', minLength: 1, maxLength: 1_024 }
const cost = { type: 'integer', minimum: 0, maximum: MOST_UNITS }
const whose = {
  tier: { type: 'string', description: "tier to decide by, in place of the key's own" },
  route: { type: 'string', description: 'a route with its own rules; not together with a tier' },
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
  capacity: units('largest number of units that can be left; null without a limit'),
  remaining: units('units left; null without a limit'),
  retryAfterMs: {
    ...durationMs('time until the same request is admitted; null if it never is'),
    type: ['number', 'null'],
  },
  resetAfterMs: durationMs('time until the key is full again'),
  delayMs: durationMs('how long to hold an allowed request (leaky bucket); 0 in shadow mode'),
}
const ofRule = exactly(['rule', ...Object.keys(figures), 'nextAfterMs'], {
  rule: { type: 'string' },
  ...figures,
  nextAfterMs: durationMs('time until `remaining` grows by one; 0 if the rule is full'),
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
    description: 'the decision without shadow mode; sent together with `shadow`',
  },
})

/** checkBody is the body of `POST /v1/check`. */
export const checkBody = { oneOf: [oneCheck, manyChecks] }

/** checkAnswer is its response: one decision, or one per check. */
export const checkAnswer = {
  oneOf: [decision, exactly(['decisions'], { decisions: { type: 'array', items: decision } })],
}

/** settleBody is the body of `POST /v1/charge` and `POST /v1/refund`. */
export const settleBody = exactly(['key', 'cost'], { key, cost, ...whose })

/** chargeAnswer is the response of `POST /v1/charge`. */
export const chargeAnswer = exactly(['key', 'charged'], { key, charged: cost })

/**
 * refundAnswer is the response of `POST /v1/refund`, which returns at most what the key has used.
 */
export const refundAnswer = exactly(['key', 'refunded'], { key, refunded: cost })
