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
 * defineAlgorithm checks an algorithm and fills in defaults. By default it has no parameters, its
 * capacity is the limit, `take` combines `waitUs` and `spend`, `refund` does nothing, and `carry`
 * keeps the cells. The state has a fixed number of cells, nothing is delayed, held or leased, and
 * `lineUs` returns the wait of the cost alone.
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
