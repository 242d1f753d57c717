import {
  type Algorithm,
  completeAlgorithm,
  type GivenAlgorithm,
  optional,
  required,
} from './algorithm.ts'
import { SluiceError, shown } from './errors.ts'
import { checkOptions } from './options.ts'

const NAME = /^[a-z][a-z0-9-]{0,63}$/
const CODE = /^([A-Z0-9]{1,8}|[a-z][a-z0-9-]{0,63})$/

/**
 * defineAlgorithm completes an algorithm. Left out, it has no parameters and the capacity is the
 * limit, `take` is made of `waitUs` and `spend`, `refund` does nothing, `carry` keeps the cells as
 * they are, the state has a fixed number of cells, nothing is delayed or leased, and of those in line
 * only the wait of the cost itself is known.
 */
export function defineAlgorithm(given: GivenAlgorithm): Algorithm {
  checkOptions('defineAlgorithm', given, ['name', ...required, ...optional])
  const { name, code = name, lua = '' } = given
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw wrong(`name must be kebab-case, such as 'token-bucket', got ${shown(name)}.`)
  }
  for (const field of required) {
    if (typeof given[field] === 'function') continue
    throw wrong(`${name} must have the function ${field}, got ${shown(given[field])}.`)
  }
  if (!CODE.test(code)) {
    throw wrong(`${name}: code must be 1 to 8 capital letters or digits, got ${shown(code)}.`)
  }
  if (typeof lua !== 'string') throw wrong(`${name}: lua must be a text, got ${shown(lua)}.`)
  return completeAlgorithm(given)
}

const wrong = (text: string) => new SluiceError('SLUICE_OPTION', `defineAlgorithm: ${text}`)
