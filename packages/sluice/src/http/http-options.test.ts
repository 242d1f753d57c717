import { expect, it } from 'vitest'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { checkHttp } from './http-options.ts'

const rule = tokenBucket({ limit: 1, per: '1s' })

it.each<[unknown, string]>([
  [rule, 'got a rule. Pass { rules: … }'],
  [[rule], 'got a rule. Pass { rules: … }'],
  [[], 'options must be an object, got an array'],
  [undefined, 'options must be an object, got undefined'],
  [
    { rules: rule, trustProxy: true },
    "such as 1, or a list of their addresses and blocks, such as ['10.0.0.0/8'], got true.",
  ],
  [{ rules: rule, trustProxy: 1.5 }, 'trustProxy must be a whole number from 0 to 64, got 1.5'],
  [{ rules: rule, partitionKey: 'x-user' }, 'partitionKey must be a function, got "x-user"'],
  [{ rules: rule, trustProxy: ['here'] }, 'trustProxy: "here" is no address'],
])('%# is told what to write', (options, says) => {
  expect(() => checkHttp(options as never, true)).toThrow(says)
})
