import type { FastifyReply, FastifyRequest } from 'fastify'
import { systemClock } from '../../core/clock.ts'
import { isLater, type Later } from '../../core/later.ts'
import { incomingOf, isGone } from '../../http/connect.ts'
import { exposed, hasOrigin } from '../../http/fields.ts'
import { ofFastify } from '../../http/framework.ts'
import type { Entrance, Guard } from '../../http/guard.ts'
import { whenDone } from '../../http/when-done.ts'

/** Next continues with the request, or reports an error. */
export type Next = (error?: Error) => void

/** enter decides about a request in a hook, and calls `next` only if it may go ahead. */
export function enter(
  guard: Guard<FastifyRequest, FastifyReply>,
  request: FastifyRequest,
  reply: FastifyReply,
  next: Next,
): void {
  const incoming = incomingOf(request.raw, ofFastify, request)
  // Do not run a handler or an error handler for a closed connection.
  if (!incoming) {
    drop(reply)
    return
  }
  let acted: Later<boolean>
  try {
    const entered = guard.enter(request, incoming)
    acted = isLater(entered)
      ? entered.then((entrance) => act(guard, request, reply, entrance))
      : act(guard, request, reply, entered)
  } catch (error) {
    next(error as Error)
    return
  }
  if (!isLater(acted)) {
    if (acted) next()
    return
  }
  acted.then(
    (isAdmitted) => isAdmitted && !isGone(request.raw, reply.raw) && next(),
    (error) => !isGone(request.raw, reply.raw) && next(error),
  )
}

function drop(reply: FastifyReply): void {
  reply.hijack()
  reply.raw.destroy()
}

/** Writes the guard's headers or refusal, and tells whether the request may go ahead. */
function act(
  guard: Guard<FastifyRequest, FastifyReply>,
  request: FastifyRequest,
  reply: FastifyReply,
  entrance: Entrance,
): Later<boolean> {
  const { fields, refusal, limit, delayMs, spent } = entrance
  // Before anything that may throw.
  if (spent)
    whenDone(request.raw, reply.raw, (isWhole) => guard.finish(entrance, request, reply, isWhole))
  for (let i = 0; i < fields.length; i += 1) reply.header(fields[i][0], fields[i][1])
  if (fields.length > 0 && hasOrigin(request.raw)) {
    const others = reply.getHeader('access-control-expose-headers')
    reply.header('access-control-expose-headers', exposed(fields, others))
  }
  if (!refusal) {
    if (limit) request.rateLimit = limit
    return delayMs > 0 ? systemClock.sleep(delayMs).then(() => true) : true
  }
  for (const [name, value] of refusal.fields) reply.header(name, value)
  reply.code(refusal.status).send(refusal.body)
  return false
}
