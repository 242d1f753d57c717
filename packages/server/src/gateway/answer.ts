import type { FastifyReply } from 'fastify'
import { PROBLEM_TYPE, type Problem, problem, problemText } from '../problem.ts'

/** answer sends a problem to the client. */
export function answer(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).type(PROBLEM_TYPE).send(problemText(problem))
}

/** stopping answers requests that arrive on open connections during shutdown. */
export const stopping = problem(503, 'The gateway is shutting down.')
