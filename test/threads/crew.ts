import { execFileSync } from 'node:child_process'
import { Worker } from 'node:worker_threads'
import { sharedMemoryStore } from 'sluice/shared-memory'

/** Words that threads share besides the store; the clock is at byte 64. */
const CONTROL_WORDS = 4_096
const START_US = 1_700_000_000_000_000n

/** Job is the work of a thread of `worker.mjs`. */
export interface Job {
  readonly kind: 'stress' | 'history' | 'hammer'
  readonly rules: readonly string[]
  readonly name: string
  readonly [option: string]: unknown
}

/**
 * createCrew creates a store in shared memory, a clock that all threads read, and functions to run
 * threads.
 */
export function createCrew(maxKeys = 10_000, maxBytes = 2 ** 26) {
  const control = new SharedArrayBuffer(4 * CONTROL_WORDS)
  const words = new Int32Array(control)
  const time = new BigInt64Array(control, 64, 1)
  time[0] = START_US
  const clock = {
    nowUs: () => Number(Atomics.load(time, 0)),
    sleep: () => Promise.reject(new Error('this clock cannot sleep')),
  }
  const store = sharedMemoryStore({ maxKeys, maxBytes, clock })

  /** Starts a thread with another program than `worker.mjs`. */
  function startFile(file: string, options: object): Worker {
    const workerData = { ...options, handle: store.handle, control }
    return new Worker(new URL(file, import.meta.url), { workerData, execArgv: [] })
  }

  function start(job: Job, broken = false): Worker {
    return startFile('./worker.mjs', { job, broken })
  }

  return {
    store,
    words,
    clock,
    startUs: Number(START_US),
    /** Moves the clock of all threads. */
    advance: (us: number) => void Atomics.add(time, 0, BigInt(us)),
    start,
    startFile,
    /** Starts threads, releases them all at once, and returns their answers. */
    async run<Answer>(count: number, jobOf: (i: number) => Job, broken = false): Promise<Answer[]> {
      words.fill(0, 0, 16)
      const threads = Array.from({ length: count }, (_, i) => start(jobOf(i), broken))
      const answers = threads.map((thread) => answerOf<Answer>(thread))
      await Promise.race([allReady(words, count), Promise.all(answers)])
      Atomics.store(words, 1, 1)
      Atomics.notify(words, 1)
      return Promise.all(answers)
    },
  }
}

async function allReady(words: Int32Array, count: number): Promise<void> {
  while (Atomics.load(words, 0) < count) {
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

/** answerOf returns the first message of a thread. */
export function answerOf<Answer>(thread: Worker): Promise<Answer> {
  return new Promise((resolve, reject) => {
    thread.once('message', resolve)
    thread.once('error', reject)
    thread.once('exit', (code) => reject(new Error(`a thread ended with ${code}`)))
  })
}

/** buildLibrary updates `dist`, which threads import, from the sources. */
export function buildLibrary(): void {
  build('packages/sluice', 'packages/sluice/tsconfig.cjs.json')
  execFileSync(process.execPath, ['scripts/dist.mjs'])
}

/** buildServer updates the built command and dashboard from the sources. */
export function buildServer(): void {
  buildLibrary()
  build('packages/server')
  const vite = ['node_modules/vite/bin/vite.js', 'build', '--logLevel', 'warn']
  execFileSync(process.execPath, [...vite, 'packages/server/dashboard'])
}

function build(...projects: string[]): void {
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '--build', ...projects])
}

export type Crew = ReturnType<typeof createCrew>
