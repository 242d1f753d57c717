import { expect, it } from 'vitest'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { createLimiter } from '../limiter/limiter.ts'
import { checkHttp } from './check-options.ts'

const rule = tokenBucket({ limit: 1, per: '1s' })

it.each<[unknown, string]>([
  [rule, 'got a rule. Pass { rules: … }'],
  [[rule], 'got a rule. Pass { rules: … }'],
  [[], 'such as { rules: … }, got an array'],
  [undefined, 'such as { rules: … }, got undefined'],
  [
    { rules: rule, trustProxy: true },
    "such as 1, or a list of their addresses and blocks, such as ['10.0.0.0/8'], got true.",
  ],
  [{ rules: rule, trustProxy: 1.5 }, 'trustProxy must be a whole number from 0 to 64, got 1.5'],
  [
    { rules: rule, partitionKey: 'x-user' },
    'partitionKey must be a function of the request, got "x-user"',
  ],
  [
    { rules: rule, trustProxy: ['10.0.0.0/8', 'here'] },
    'trustProxy: item 2 must be an address or a block, such as \'10.0.0.0/8\', got "here".',
  ],
  [
    { rules: rule, trustProxy: ['loopback'] },
    "got \"loopback\". That network is '127.0.0.0/8', '::1'.",
  ],
  [{ rules: rule, allowList: '10.0.0.1' }, 'such as [\'10.0.0.0/8\'], got "10.0.0.1".'],
  [
    { rules: rule, headers: ['x', 'draft-8'] },
    "headers: item 2 must be one of 'x', 'draft-6', 'draft-7', 'draft-11', got \"draft-8\".",
  ],
  [{ rules: rule, headers: 'draft-7' }, 'such as [\'draft-11\'], got "draft-7".'],
  [{ rules: rule, headers: ['draft-7', 'draft-11'] }, "got 'draft-7' and 'draft-11'."],
  [{}, "such as `rules: tokenBucket({ limit: 100, per: '1m' })`, got none."],
  [{ rules: rule, policy: {} }, 'got `rules` and `policy`.'],
  [{ rules: { limit: 5, per: '1m' } }, 'rules must be one or more rules'],
  [{ rules: [] }, 'got an empty list.'],
  [{ rules: [rule, '5/1m'] }, 'parseRule(\'100/1m\'), got "5/1m".'],
  [{ rules: createLimiter(rule) }, 'got a limiter. Pass it as `limiter`.'],
  [{ limiter: rule }, 'got a rule. Pass it as `rules`.'],
  [createLimiter(rule), 'got a limiter. Pass { limiter: … }.'],
  [{ policy: {} }, 'policy must come from createPolicy(), got an object.'],
  [{ rules: rule, tier: () => 'free' }, 'in place of `rules`, or leave `tier` out.'],
  [{ windowMs: 60_000, max: 5 }, 'there is no option "windowMs". A limit is a rule'],
  [
    { rules: rule, store: {} },
    'there is no option "store". A limiter has a store: `limiter: createLimiter(',
  ],
  [{ rules: rule, key: 'x-user' }, 'key must be a function of the request, got "x-user"'],
])('%# gets a remedy', (options, says) => {
  expect(() => checkHttp(options as never, true)).toThrow(says)
})
