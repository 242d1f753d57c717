import type { FastifyRequest } from 'fastify'
import { SluiceError } from '../../core/errors.ts'
import { isLater } from '../../core/later.ts'
import type { CostOption } from '../../http/request-cost.ts'

/** A function of a request. */
type Reader = (request: FastifyRequest) => unknown

/** The options that read requests before they are counted. */
interface Readers {
  readonly key?: Reader
  readonly tier?: Reader
  readonly skip?: Reader
  readonly cost?: CostOption<FastifyRequest>
}

/**
 * beforeBody wraps options for a hook that runs before Fastify parses bodies. There `request.body`
 * is undefined for every client, so all of them would share one key: reading it is an error.
 */
export function beforeBody<Options extends Readers>(options: Options, hook: string): Options {
  const { key, tier, skip, cost } = options
  const guarded = (name: string, read: unknown) =>
    typeof read === 'function' ? bodiless(name, hook, read as Reader) : read
  const named = Object.entries({ key, tier, skip }).filter(([, read]) => read !== undefined)
  const parts =
    typeof cost === 'object' && cost !== null
      ? Object.fromEntries(
          Object.entries(cost).map(([rule, part]) => [rule, guarded('cost', part)]),
        )
      : guarded('cost', cost)
  return {
    ...options,
    ...Object.fromEntries(named.map(([name, read]) => [name, guarded(name, read)])),
    ...(cost === undefined ? {} : { cost: parts }),
  }
}

/** Wraps a reader so that it throws if it reads a body that is not parsed yet. */
function bodiless(name: string, hook: string, read: Reader): Reader {
  return (request) => {
    if (request.body !== undefined || !hasBody(request)) return read(request)
    Object.defineProperty(request, 'body', { configurable: true, get: () => fail(name, hook) })
    let given: unknown
    try {
      given = read(request)
    } catch (error) {
      restore(request)
      throw error
    }
    if (isLater(given)) return Promise.resolve(given).finally(() => restore(request))
    restore(request)
    return given
  }
}

function restore(request: FastifyRequest): void {
  const own = { configurable: true, enumerable: true, writable: true, value: undefined }
  Object.defineProperty(request, 'body', own)
}

function hasBody({ headers }: FastifyRequest): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  return length !== '0' || encoding !== undefined
}

function fail(name: string, hook: string): never {
  throw new SluiceError(
    'SLUICE_OPTION',
    `rateLimit: ${name} reads request.body, which is undefined for every client in the hook '${hook}': ` +
      "Fastify parses bodies later. Give `hook: 'preHandler'`.",
  )
}
