import { SluiceError, shown } from '../core/errors.ts'

/** ReplayAnswer is the answer to a request. */
export type ReplayAnswer = 'allow' | 'deny'

/** A whole number of any size: a `number` up to 2^53, a `bigint` beyond. */
type Whole = number | bigint

interface Bucket {
  tokens: Whole
  lastRefill: Whole
}

/** Replay answers one request after another. A timestamp is the decimal text of an integer. */
export interface Replay {
  /** Answers a request. Throws `SLUICE_REPLAY` if the timestamp is not an integer. */
  request(client: string, timestamp: string): ReplayAnswer
}

const INTEGER = /^[+-]?\d+$/

/**
 * createReplay creates the state of a replay: per client, a bucket of `capacity` tokens that
 * refills at capacity / window. It computes with integers only, on the timestamps of the requests.
 * The format fixes the arithmetic and rounds the refill instant down, so it may admit slightly more
 * than `tokenBucket`. Both parameters are whole numbers from 0 up, of any size.
 */
export function createReplay(capacity: Whole, window: Whole): Replay {
  const full = checkedFigure('capacity', capacity)
  const span = checkedFigure('window', window)
  const buckets = new Map<string, Bucket>()
  return {
    request(client, timestamp) {
      const now = parsed(timestamp)
      let bucket = buckets.get(client)
      if (bucket === undefined) {
        bucket = { tokens: full, lastRefill: now }
        buckets.set(client, bucket)
      } else {
        refill(bucket, full, span, now)
      }
      if (bucket.tokens <= 0) return 'deny'
      if (typeof bucket.tokens === 'number') bucket.tokens -= 1
      else bucket.tokens = narrowed(bucket.tokens - 1n)
      return 'allow'
    },
  }
}

/**
 * replay answers a list of instructions. `['request', client, timestamp]` is answered with
 * `'allow'` or `'deny'`; other commands are skipped. A malformed request throws `SLUICE_REPLAY`.
 */
export function replay(
  capacity: Whole,
  window: Whole,
  instructions: readonly (readonly string[])[],
): ReplayAnswer[] {
  const state = createReplay(capacity, window)
  const answers: ReplayAnswer[] = []
  if (!Array.isArray(instructions) || !instructions.every(Array.isArray)) {
    throw new SluiceError('SLUICE_REPLAY', 'instructions must be an array of arrays of strings.')
  }
  instructions.forEach((instruction, i) => {
    const [command, client, timestamp] = instruction
    if (command !== 'request') return
    if (instruction.length !== 3 || !isTimestamp(timestamp)) {
      throw new SluiceError(
        'SLUICE_REPLAY',
        `instruction ${i}: a request takes a client and an integer timestamp, got ` +
          `${instruction.slice(1).map(shown).join(' and ') || 'neither'}.`,
      )
    }
    answers.push(state.request(client, timestamp))
  })
  return answers
}

function refill(bucket: Bucket, capacity: Whole, window: Whole, now: Whole): void {
  const { tokens, lastRefill } = bucket
  if (now <= lastRefill || window === 0 || capacity === 0) return
  if (
    typeof now === 'number' &&
    typeof lastRefill === 'number' &&
    typeof tokens === 'number' &&
    typeof capacity === 'number' &&
    typeof window === 'number'
  ) {
    const product = (now - lastRefill) * capacity
    if (product <= Number.MAX_SAFE_INTEGER) {
      const added = Math.floor(product / window)
      if (added === 0) return
      if (tokens + added >= capacity) {
        bucket.tokens = capacity
        bucket.lastRefill = now
        return
      }
      // Exact: added · window ≤ elapsed · capacity.
      bucket.tokens = tokens + added
      bucket.lastRefill = lastRefill + Math.floor((added * window) / capacity)
      return
    }
  }
  const added = ((BigInt(now) - BigInt(lastRefill)) * BigInt(capacity)) / BigInt(window)
  if (added === 0n) return
  const sum = BigInt(tokens) + added
  if (sum >= BigInt(capacity)) {
    bucket.tokens = capacity
    bucket.lastRefill = now
    return
  }
  bucket.tokens = narrowed(sum)
  bucket.lastRefill = narrowed(BigInt(lastRefill) + (added * BigInt(window)) / BigInt(capacity))
}

function isTimestamp(timestamp: unknown): timestamp is string {
  return typeof timestamp === 'string' && INTEGER.test(timestamp)
}

function parsed(timestamp: string): Whole {
  if (!isTimestamp(timestamp)) {
    throw new SluiceError(
      'SLUICE_REPLAY',
      `a timestamp must be an integer, got ${shown(timestamp)}.`,
    )
  }
  const value = Number(timestamp)
  if (Number.isSafeInteger(value)) return value
  return BigInt(timestamp[0] === '+' ? timestamp.slice(1) : timestamp)
}

function narrowed(value: bigint): Whole {
  return value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER
    ? Number(value)
    : value
}

function checkedFigure(what: string, value: Whole): Whole {
  if (typeof value === 'bigint' && value >= 0n) return narrowed(value)
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new SluiceError(
    'SLUICE_REPLAY',
    `${what} must be a whole number from 0 up (a bigint beyond 2^53), got ${shown(value)}.`,
  )
}
