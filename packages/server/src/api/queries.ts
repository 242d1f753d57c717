import type { FastifyInstance } from 'fastify'
import { SluiceError } from 'sluice'
import { operations } from './openapi.ts'

/**
 * refuseUnknownQueries makes administrative operations refuse query parameters that they do not
 * have: a misspelt filter must not widen what is listed or reset.
 */
export function refuseUnknownQueries(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const path = route.url.replace(':key', '{key}')
    // Fastify adds a HEAD route to each GET.
    const method = route.method === 'HEAD' ? 'get' : String(route.method).toLowerCase()
    const operation = operations[path]?.[method]
    const isForOperators = operation?.access === 'read' || operation?.access === 'full'
    // Scrapers may add their own parameters.
    if (!isForOperators || path === '/metrics') return
    const known = Object.keys(operation.query ?? {})
    // Runs after the access check.
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
  const those = known.length > 0 ? `Known: ${known.join(', ')}.` : 'It takes none.'
  return new SluiceError(
    'SLUICE_OPTION',
    `unknown query parameter ${JSON.stringify(name)}. ${those}`,
  )
}

function repeated(name: string): SluiceError {
  return new SluiceError('SLUICE_OPTION', `give the query parameter ${JSON.stringify(name)} once.`)
}
