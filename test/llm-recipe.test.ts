import type { Clock, Limiter, Permit } from 'sluice'
import { type ManualClock, manualClock } from 'sluice/testing'
import { expect, it } from 'vitest'
import { type Random, seededRandom } from '../packages/sluice/src/testing/random.ts'
import { readBlocks } from './readme-blocks.ts'

const PER_US = 60_000_000
const TEAMS = ['a', 'b', 'c', 'd']

type Cost = { readonly requests: number; readonly tokens: number; readonly streams: number }
type TeamLimiter = Limiter<{ readonly team: string | null }, number | Cost>
type Model = () => AsyncIterable<{ readonly text: string; readonly tokens: number }>

/** The exports of the recipe in docs/guide/cookbook.md. */
interface Recipe {
  createTeamLimiter(clock: Clock): TeamLimiter
  answer(
    limiter: TeamLimiter,
    team: string,
    estimate: number,
    model: Model,
  ): AsyncGenerator<string, void>
}

/** A stream in the ledger. */
interface Stream {
  readonly estimate: number
  readonly spentUs: number
  /** Tokens used beyond its estimate; 0 until it has settled. */
  overrun: number
}

/** Ledger counts a team's tokens per aligned window, in a slow and obvious way. */
interface Ledger {
  readonly windows: Map<number, number>
  readonly inFlight: Set<Stream>
  /** The streams in flight at the last admission. */
  atLastAdmission: readonly Stream[]
}

const newLedger = (): Ledger => ({ windows: new Map(), inFlight: new Set(), atLastAdmission: [] })

function add({ windows }: Ledger, atUs: number, units: number): void {
  const window = Math.floor(atUs / PER_US)
  windows.set(window, (windows.get(window) ?? 0) + units)
}

/** Returns the counted tokens: of the current window, and the weighted part of the previous one. */
function usedAt({ windows }: Ledger, nowUs: number): number {
  const window = Math.floor(nowUs / PER_US)
  const left = PER_US - (nowUs % PER_US)
  const before = windows.get(window - 1) ?? 0
  return (windows.get(window) ?? 0) + Math.ceil((before * left) / PER_US)
}

/** Wraps the recipe's limiter, and compares it with a ledger at each admission and settlement. */
function watched(limiter: TeamLimiter, clock: ManualClock) {
  const ledgers = new Map(TEAMS.map((team) => [team, newLedger()]))
  const wrong: string[] = []
  const seen = { admitted: 0, refused: 0, settled: 0, mostInFlight: 0, mostDebt: 0 }
  const { capacity } = limiter.peek({ team: 'a' }).rules[1]

  function inFlight(): number {
    let streams = 0
    for (const ledger of ledgers.values()) streams += ledger.inFlight.size
    return streams
  }

  /**
   * Checks that the limiter's tokens equal the ledger's, and that debt is caused by known streams.
   */
  function compare(team: string): void {
    const ledger = ledgers.get(team)!
    const used = usedAt(ledger, clock.nowUs())
    const told = limiter.peek({ team }).rules[1].remaining
    if (told !== Math.max(0, capacity - used)) wrong.push(`${told} left of ${used} used`)
    const overruns = ledger.atLastAdmission.reduce((sum, { overrun }) => sum + overrun, 0)
    const debt = used - capacity
    if (debt > overruns) wrong.push(`debt of ${debt} with ${overruns} beyond the estimates`)
    seen.mostDebt = Math.max(seen.mostDebt, debt)
  }

  function admitted(team: string, estimate: number): Stream {
    const ledger = ledgers.get(team)!
    const nowUs = clock.nowUs()
    const stream = { estimate, spentUs: nowUs, overrun: 0 }
    add(ledger, nowUs, estimate)
    ledger.inFlight.add(stream)
    ledger.atLastAdmission = [...ledger.inFlight]
    const used = usedAt(ledger, nowUs)
    if (used > capacity) wrong.push(`admitted ${estimate}, so that ${used} are used`)
    compare(team)
    seen.admitted += 1
    seen.mostInFlight = Math.max(seen.mostInFlight, inFlight())
    return stream
  }

  function settled(team: string, stream: Stream, tokens: number): void {
    const ledger = ledgers.get(team)!
    const change = tokens - stream.estimate
    add(ledger, change > 0 ? clock.nowUs() : stream.spentUs, change)
    stream.overrun = Math.max(0, change)
    if (!ledger.inFlight.delete(stream)) wrong.push('settled twice')
    compare(team)
    seen.settled += 1
  }

  const tryAcquire = (({ team }: { team: string }, cost: Cost) => {
    const permit = limiter.tryAcquire({ team }, cost)
    if (!permit.allowed) {
      seen.refused += 1
      return permit
    }
    const stream = admitted(team, cost.tokens)
    const settle: Permit<Cost>['settle'] = (actual) => {
      permit.settle(actual)
      settled(team, stream, actual.tokens)
    }
    return { ...permit, settle }
  }) as TeamLimiter['tryAcquire']

  return { limiter: { ...limiter, tryAcquire }, wrong, seen, inFlight }
}

const fates = ['reads', 'reads', 'breaks', 'returns', 'aborts', 'fails', 'forgets'] as const

it('keeps 1,000 streams within their budgets while random clients are killed', async () => {
  const block = readBlocks('docs/guide/cookbook.md').find(({ code }) => code.includes('* answer('))
  const { answer, createTeamLimiter } = (await import(/* @vite-ignore */ block!.id)) as Recipe
  const clock = manualClock()
  const own = createTeamLimiter(clock)
  const { limiter, wrong, seen, inFlight } = watched(own, clock)
  const random = seededRandom(1)
  const ended: Record<string, number> = {}

  /** Creates a slow model that stops when the request's signal aborts. */
  function modelOf(chunks: number, tokens: number, signal: AbortSignal, failsAt: number): Model {
    return async function* () {
      for (let i = 0; i < chunks; i += 1) {
        await clock.sleep(200 + ((i * 7_919) % 5_000), signal)
        if (i === failsAt) throw new Error('the model has failed')
        yield { text: 'word', tokens }
      }
    }
  }

  async function client(team: string, own: Random): Promise<void> {
    const fate = own.pick(fates)
    const estimate = 200 + own.below(600)
    const chunks = 3 + own.below(20)
    const last = own.below(chunks)
    const kill = new AbortController()
    const failsAt = fate === 'fails' ? last : -1
    const perChunk = Math.floor((estimate * (1 + own.below(12))) / (4 * chunks))
    const model = modelOf(chunks, perChunk, kill.signal, failsAt)
    for (;;) {
      const stream = answer(limiter, team, estimate, model)
      try {
        await read(stream, fate, last, kill)
        ended[fate] = (ended[fate] ?? 0) + 1
        return
      } catch (error) {
        const { retryAfterMs } = error as { retryAfterMs?: number }
        if (retryAfterMs === undefined) throw error
        await clock.sleep(retryAfterMs + own.below(2_000))
      }
    }
  }

  let done = 0
  const clients = Array.from({ length: 1_000 }, async (_, i) => {
    await client(TEAMS[i % TEAMS.length], seededRandom(i))
    done += 1
  })
  for (let steps = 0; done < 1_000 && steps < 5_000; steps += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(1 + random.below(700))
  }
  expect(done).toBe(1_000)
  await Promise.all(clients)
  expect(wrong).toEqual([])
  expect(Object.keys(ended).sort()).toEqual([...new Set(fates)].sort())
  expect(inFlight()).toBe(ended.forgets)
  expect(seen.settled).toBe(seen.admitted - ended.forgets)
  expect([seen.mostInFlight > 500, seen.refused > 100, seen.mostDebt > 100]).toEqual(
    Array(3).fill(true),
  )

  // Units of abandoned streams come back by themselves, and nothing else is held.
  clock.advance(1.25 * 5 * 60_000)
  expect(own.stats().held).toBe(0)
  for (const team of TEAMS) {
    const rules = own.peek({ team }).rules.map(({ remaining }) => remaining)
    expect(rules).toEqual([600, 100_000, 500])
  }
})

/** Reads a stream as its client would. The client may be killed at chunk `last`. */
async function read(
  stream: AsyncGenerator<string, void>,
  fate: (typeof fates)[number],
  last: number,
  kill: AbortController,
): Promise<void> {
  for (let i = 0; ; i += 1) {
    const next = stream.next()
    if (i === last && fate === 'returns') void stream.return()
    if (i === last && fate === 'aborts') kill.abort()
    try {
      if ((await next).done) return
    } catch (error) {
      if ((error as { retryAfterMs?: number }).retryAfterMs !== undefined) throw error
      return
    }
    if (i === last && fate === 'forgets') return
    if (i === last && fate === 'breaks') {
      await stream.return()
      return
    }
  }
}
