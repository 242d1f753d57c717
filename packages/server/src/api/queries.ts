import type { FastifyInstance } from 'fastify'
import { SluiceError } from 'sluice'
import { operations } from './openapi.ts'

/**
 * refuseUnknownQueries makes all that operators call refuse parameters that its description does not
 * have: a filter that is misspelt must not widen what is listed, or reset.
 */
export function refuseUnknownQueries(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const path = route.url.replace(':key', '{key}')
    // Fastify answers HEAD, too, where there is a GET.
    const method = route.method === 'HEAD' ? 'get' : String(route.method).toLowerCase()
    const operation = operations[path]?.[method]
    const isForOperators = operation?.access === 'read' || operation?.access === 'full'
    // Scrapers may add what they like.
    if (!isForOperators || path === '/metrics') return
    const known = Object.keys(operation.query ?? {})
    // After the check of who is asking.
    route.preHandler = (request, _reply, next) => {
      for (const [name, value] of Object.entries(request.query as object)) {
        if (!known.includes(name)) return next(unknown(name, known))
        if (typeof value !== 'string') return next(repeated(name))
      }
      next()
    }
  })
}

function unknown(name: string, known: readonly string[]): SluiceError {
  const those = known.length > 0 ? `There are: ${known.join(', ')}.` : 'It takes none.'
  return new SluiceError(
    'SLUICE_OPTION',
    `there is no query parameter ${JSON.stringify(name)} here. ${those}`,
  )
}

function repeated(name: string): SluiceError {
  return new SluiceError('SLUICE_OPTION', `give the query parameter ${JSON.stringify(name)} once.`)
}
