import fc from 'fast-check'
import { fixedWindow, leakyBucket, type Rule, slidingWindowCounter, tokenBucket } from 'sluice'
import { describe, expect, it } from 'vitest'
import { ownTwins } from '../packages/sluice/src/algorithms/lua/index.ts'
import { RECENT } from '../packages/sluice/src/core/algorithm.ts'
import { exact } from '../packages/sluice/src/stores/redis/exact.ts'
import { useRedis } from './redis/fixture.ts'

const redis = useRedis()

/** Computes each of these in Lua, and returns the results as text, so that no number is rounded. */
const SCRIPT = `${exact}
local out = {}
for i = 1, #ARGV, 3 do
  local a, b, c = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local quotient = mul_div(a, b, c)
  out[#out + 1] = string.format('%d %d', quotient, mul_sub(a, b, c, quotient))
end
return out`

/** Whole numbers up to 2^52 of every magnitude, and those around powers of two. */
const operand = fc.oneof(
  fc.tuple(fc.maxSafeNat(), fc.nat(52)).map(([n, bits]) => n % (2 ** bits + 1)),
  fc.tuple(fc.nat(52), fc.nat(2)).map(([bits, less]) => Math.max(0, 2 ** bits - less)),
  fc.constantFrom(999_999_999_989, 86_399_999_000, 1_000_000_000_000),
)
const triple = fc
  .tuple(operand, operand, operand)
  .filter(([a, b, c]) => c > 0 && BigInt(a) * BigInt(b) <= BigInt(c) * 2n ** 52n)

describe('the arithmetic of twins', () => {
  it('divides products of any size in Lua as BigInt does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(triple, { minLength: 1, maxLength: 500 }), async (triples) => {
        const told = await redis.client.eval(SCRIPT, 0, ...triples.flat())
        const expected = triples.map(([a, b, c]) => {
          const product = BigInt(a) * BigInt(b)
          return `${product / BigInt(c)} ${product % BigInt(c)}`
        })
        expect(told).toEqual(expected)
      }),
      { numRuns: 100 },
    )
  })
})

const limit = fc.oneof(
  fc.constantFrom(999_999_999_989, 999_999_937, 1_000_000_000_000),
  fc.integer({ min: 1_000_000, max: 1_000_000_000_000 }),
)
const per = fc.integer({ min: 1_000, max: 86_400_000_000 }).map((us) => `${us}us` as const)
const rule = fc.record({ limit, per }).chain((options) => {
  return fc.constantFrom<Rule>(
    tokenBucket(options),
    leakyBucket(options),
    fixedWindow(options),
    slidingWindowCounter(options),
  )
})
const call = fc.record({
  verb: fc.constantFrom('wait', 'spend', 'spend', 'refund'),
  cost: fc.oneof(limit, fc.nat(3)),
  /** How far time advances, and how long ago a refunded spend was, as parts of `per`. */
  later: fc.double({ min: 0, max: 0.7, noNaN: true }),
  ago: fc.option(fc.double({ min: 0, max: 2, noNaN: true })),
})

/** Calls the functions of a twin, and returns the wait and the cells after each call. */
const calls = (twin: string) => `${exact}
local t = (function() ${twin} end)()
local r = cjson.decode(ARGV[1])
local s, out = { 0, 0, 0 }, {}
for i = 2, #ARGV, 4 do
  local verb, cost, now = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local wait = 0
  if verb == 'wait' then
    wait = t.wait(s, r, math.min(cost, r.capacity), now)
  elseif verb == 'spend' then
    t.spend(s, r, math.max(1, cost), now)
  elseif t.refund then
    t.refund(s, r, cost, now, tonumber(ARGV[i + 3]))
  end
  out[#out + 1] = string.format('%d: %d %d %d', wait, s[1], s[2], s[3])
end
return out`

describe('the twin of a large limit', () => {
  it('changes cells as its algorithm does, with debt and refunds of any instant', async () => {
    await fc.assert(
      fc.asyncProperty(rule, fc.array(call, { maxLength: 40 }), async (rule, list) => {
        const { algorithm } = rule
        const cells = new Float64Array(3)
        const args: (string | number)[] = []
        const expected: string[] = []
        let nowUs = 1_767_225_600_123_456
        for (const { verb, cost, later, ago } of list) {
          nowUs += Math.floor(later * rule.perUs)
          const spentUs = ago === null ? RECENT : nowUs - Math.floor(ago * rule.perUs)
          args.push(verb, cost, nowUs, spentUs)
          let wait = 0
          if (verb === 'wait') {
            wait = algorithm.waitUs(cells, 0, rule, Math.min(cost, rule.capacity), nowUs)
          } else if (verb === 'spend') algorithm.spend(cells, 0, rule, Math.max(1, cost), nowUs)
          else algorithm.refund(cells, 0, rule, cost, nowUs, spentUs)
          expected.push(`${wait}: ${cells.join(' ')}`)
        }
        const twin = ownTwins.get(algorithm.lua)!
        const told = await redis.client.eval(calls(twin), 0, JSON.stringify(toldOf(rule)), ...args)
        expect(told).toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })
})

/** Encodes a rule for twins. */
function toldOf(rule: Rule): object {
  const { limit, capacity, perUs: per, gapUs: gap, gapRest: rest, gapParts: parts } = rule
  const full = { full: rule.fullUs, full_rest: rule.fullRest }
  return { ...rule.params, limit, capacity, per, gap, rest, parts, ...full }
}
