import { type Clock, createLimiter, type Decision, type Limiter, type Rule } from 'sluice'
import { type Algorithm, algorithms, type Figures, ruleOf } from './algorithms.ts'

/** Mark is a request and the decision of one algorithm. */
export interface Mark {
  readonly atUs: number
  readonly allowed: boolean
  readonly delayMs: number
}

/** Score sums up the decisions of one algorithm for one client. */
export interface Score {
  readonly allowed: number
  readonly refused: number
  /** The most units admitted in any interval of `per`. */
  readonly mostInPer: number
  /** The newest marks; older ones are dropped. */
  readonly marks: readonly Mark[]
}

/** Row is one algorithm, which decides on all traffic. */
export interface Row {
  readonly algorithm: Algorithm
  readonly rule: Rule | undefined
  /** The library's error about the inputs or the cost; empty for none. */
  readonly problem: string
  score(client: string): Score
  /** The current state, without spending; undefined if the inputs are invalid. */
  peek(client: string): Decision | undefined
}

/** Game sends the same traffic to all algorithms, on a virtual clock. */
export interface Game {
  readonly rows: readonly Row[]
  readonly nowUs: () => number
  /** Moves the clock forward, and makes every planned request at its exact time. */
  advance(toUs: number): void
  /** Sends a request to all algorithms now. */
  request(client: string, cost: number): void
  /** Plans requests from now on, in order; replaces those planned before. */
  plan(requests: readonly Planned[]): void
  /** How many planned requests are left. */
  planned(): number
}

export interface Planned {
  readonly atUs: number
  readonly client: string
  readonly cost: number
}

/** The largest number of marks per row and client: more than a screen can show. */
const MOST_MARKS = 2_000

/** createGame starts at `startUs`, with all clients unused. */
export function createGame(figures: Figures, startUs: number): Game {
  let nowUs = startUs
  const clock: Clock = { nowUs: () => nowUs, sleep: () => Promise.reject(new Error('no sleep')) }
  const rows = algorithms.map((algorithm) => createRow(algorithm, figures, clock))
  let plan: Planned[] = []

  function request(client: string, cost: number): void {
    for (const row of rows) row.request(client, cost)
  }
  return {
    rows,
    nowUs: () => nowUs,
    advance(toUs) {
      while (plan.length > 0 && plan[0].atUs <= toUs) {
        const [{ atUs, client, cost }] = plan.splice(0, 1)
        nowUs = Math.max(nowUs, atUs)
        request(client, cost)
      }
      nowUs = Math.max(nowUs, toUs)
    },
    request,
    plan(requests) {
      plan = [...requests]
    },
    planned: () => plan.length,
  }
}

interface Count {
  allowed: number
  refused: number
  mostInPer: number
  readonly marks: Mark[]
  /** Admissions within the last `per`, and their units. */
  readonly recent: { atUs: number; cost: number }[]
  inPer: number
}

function createRow(algorithm: Algorithm, figures: Figures, clock: Clock) {
  const counts = new Map<string, Count>()
  let limiter: Limiter | undefined
  let rule: Rule | undefined
  let problem = ''
  try {
    rule = ruleOf(algorithm, figures)
    limiter = createLimiter(rule, { clock })
  } catch (error) {
    problem = (error as Error).message
  }

  function countOf(client: string): Count {
    const known = counts.get(client)
    if (known) return known
    const count = { allowed: 0, refused: 0, mostInPer: 0, marks: [], recent: [], inPer: 0 }
    counts.set(client, count)
    return count
  }

  return {
    algorithm,
    rule,
    get problem() {
      return problem
    },
    request(client: string, cost: number) {
      if (!limiter || !rule) return
      const count = countOf(client)
      const atUs = clock.nowUs()
      try {
        const { allowed, delayMs } = limiter.check(client, cost)
        problem = ''
        count.marks.push({ atUs, allowed, delayMs })
        if (count.marks.length > MOST_MARKS) count.marks.shift()
        // A leaky bucket admits at the time of the slot.
        if (allowed) admit(count, atUs + delayMs * 1_000, cost, rule.perUs)
        else count.refused += 1
      } catch (error) {
        problem = (error as Error).message
      }
    },
    score: countOf,
    peek: (client: string) => limiter?.peek(client, 0),
  }
}

function admit(count: Count, atUs: number, cost: number, perUs: number): void {
  const { recent } = count
  count.allowed += 1
  recent.push({ atUs, cost })
  count.inPer += cost
  while (recent[0].atUs <= atUs - perUs) count.inPer -= recent.shift()!.cost
  count.mostInPer = Math.max(count.mostInPer, count.inPer)
}
