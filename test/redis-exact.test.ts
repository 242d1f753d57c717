import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exact } from '../packages/sluice/src/stores/redis/exact.ts'
import { useRedis } from './redis/fixture.ts'

const redis = useRedis()

/** Asks Lua for each of these, and gets the answers as texts, so that no number is rounded. */
const SCRIPT = `${exact}
local out = {}
for i = 1, #ARGV, 3 do
  local a, b, c = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local quotient = mul_div(a, b, c)
  out[#out + 1] = string.format('%d %d', quotient, mul_sub(a, b, c, quotient))
end
return out`

/** Whole numbers up to 2^52, of every size, and those around the powers of two. */
const operand = fc.oneof(
  fc.tuple(fc.maxSafeNat(), fc.nat(52)).map(([n, bits]) => n % (2 ** bits + 1)),
  fc.tuple(fc.nat(52), fc.nat(2)).map(([bits, less]) => Math.max(0, 2 ** bits - less)),
  fc.constantFrom(999_999_999_989, 86_399_999_000, 1_000_000_000_000),
)
const triple = fc
  .tuple(operand, operand, operand)
  .filter(([a, b, c]) => c > 0 && BigInt(a) * BigInt(b) <= BigInt(c) * 2n ** 52n)

describe('the arithmetic of twins', () => {
  it('divides in Lua as BigInt does, whatever the product', async () => {
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
