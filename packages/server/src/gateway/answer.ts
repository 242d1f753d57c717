import type { FastifyReply } from 'fastify'
import { PROBLEM_TYPE, type Problem, problemText } from '../problem.ts'

/** answer tells a client of a problem. */
export function answer(reply: FastifyReply, told: Problem): FastifyReply {
  return reply.code(told.status).type(PROBLEM_TYPE).send(problemText(told))
}
