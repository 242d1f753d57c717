import { describe, expect, it } from 'vitest'
import { algorithmOf, algorithms, codeOf, hasEdges } from './algorithms.ts'
import { choicesFrom, queryOf } from './choices.ts'
import { createGame } from './game.ts'
import { presetOf, requestsOf } from './presets.ts'

const START_US = 1_767_225_600_000_000
const choices = choicesFrom('')

/** The decisions of each algorithm for a client: allowed, refused, most in any `per`. */
function answers(game: ReturnType<typeof createGame>, client: string) {
  return Object.fromEntries(
    game.rows.map((row) => {
      const { allowed, refused, mostInPer } = row.score(client)
      return [row.algorithm.name, [allowed, refused, mostInPer]]
    }),
  )
}

describe('the game', () => {
  it('shows a fixed window admit twice its limit across an edge, and no log do so', () => {
    const game = createGame(choices, START_US)
    const rule = { limit: 10, perUs: 10_000_000 }
    const by = { windowUs: START_US, client: 'alice', cost: 1 }
    game.plan(requestsOf(presetOf('window-edge')!, rule, by))
    // One step over everything: each request is still decided at its own time.
    game.advance(START_US + 15_000_000)
    expect(game.planned()).toBe(0)
    expect(answers(game, 'alice')).toEqual({
      'token-bucket': [13, 7, 13],
      gcra: [13, 7, 13],
      'leaky-bucket': [14, 6, 10],
      'fixed-window': [20, 0, 20],
      'sliding-window-counter': [11, 9, 11],
      'sliding-window-log': [10, 10, 10],
    })
    expect(answers(game, 'bob')['fixed-window']).toEqual([0, 0, 0])
  })

  it('spends from the bucket of the client, and refills it with time', () => {
    const game = createGame(choices, START_US)
    for (let i = 0; i < 12; i += 1) game.request('alice', 1)
    const [bucket] = game.rows
    expect(bucket.peek('alice')).toMatchObject({ remaining: 0, resetAfterMs: 10_000 })
    expect(bucket.peek('bob')?.remaining).toBe(10)
    game.advance(START_US + 3_000_000)
    expect(bucket.peek('alice')?.remaining).toBe(3)
    game.advance(START_US)
    expect(game.nowUs()).toBe(START_US + 3_000_000)
  })

  it('shows the error of the library in the rows concerned', () => {
    const { rows } = createGame({ ...choices, burst: '0' }, START_US)
    const wrong = rows.filter(({ problem }) => problem !== '')
    expect(wrong.map(({ algorithm }) => algorithm.name)).toEqual(['token-bucket', 'gcra'])
    expect(wrong[0].problem).toMatch(/burst must be a whole number/)
    const game = createGame(choices, START_US)
    game.request('alice', 11)
    const log = game.rows.find(({ algorithm }) => algorithm.name === 'sliding-window-log')!
    expect(log.problem).toMatch(/11/)
    game.request('alice', 1)
    expect(log.problem).toBe('')
    expect(createGame({ ...choices, limit: '' }, START_US).rows[0].problem).toMatch(/NaN/)
  })
})

describe('the address of the playground', () => {
  it('has all choices, and nothing else', () => {
    expect(queryOf(choices)).toBe('')
    const chosen = { ...choices, algorithm: 'gcra', burst: '5', preset: 'burst', client: 'bob' }
    expect(queryOf(chosen)).toBe('?algorithm=gcra&burst=5&client=bob&preset=burst')
    expect(choicesFrom(queryOf(chosen))).toEqual(chosen)
  })

  it('replaces invalid values by defaults', () => {
    const read = choicesFrom(
      `?algorithm=none&client=eve&rate=9999&speed=0&preset=x&align=y&limit=${'9'.repeat(99)}`,
    )
    expect({ ...read, limit: '' }).toEqual({ ...choices, limit: '' })
    expect(read.limit).toHaveLength(32)
  })
})

describe('edges of windows', () => {
  it('are drawn where windows begin at the same time for all clients', () => {
    const drawn = (align: string) =>
      algorithms.filter((each) => hasEdges(each, { ...choices, align })).map(({ name }) => name)
    expect(drawn('clock')).toEqual(['fixed-window', 'sliding-window-counter'])
    expect(drawn('request')).toEqual(['sliding-window-counter'])
  })
})

describe('the code', () => {
  it('has the options that the algorithm takes', () => {
    const figures = { ...choices, burst: '20', queue: '3' }
    expect(codeOf(algorithmOf('token-bucket'), figures, 1)).toContain(
      "createLimiter(tokenBucket({ limit: 10, per: '10s', burst: 20 }))",
    )
    expect(codeOf(algorithmOf('fixed-window'), figures, 5)).toMatch(
      /fixedWindow\(\{ limit: 10, per: '10s', align: 'clock' \}\).*check\(userId, 5\)/s,
    )
    expect(codeOf(algorithmOf('leaky-bucket'), figures, 1)).toContain('queue: 3 }')
  })

  it('waits for a leaky bucket', () => {
    const code = codeOf(algorithmOf('leaky-bucket'), choices, 2)
    expect(code).toMatch(/= await limiter\.wait\(userId, 2\)$/)
  })
})
