import type { FastifyReply } from 'fastify'
import { PROBLEM_TYPE, type Problem, problem, problemText } from '../problem.ts'

/** answer tells a client of a problem. */
export function answer(reply: FastifyReply, told: Problem): FastifyReply {
  return reply.code(told.status).type(PROBLEM_TYPE).send(problemText(told))
}

/** stopping is what clients are told who ask on a connection that is still there. */
export const stopping = problem(503, 'The gateway is shutting down.')
