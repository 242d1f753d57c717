import cluster, { type Worker } from 'node:cluster'
import type { Logger } from 'pino'
import { SluiceError } from 'sluice'
import type { Settings } from '../settings.ts'
import type { Channel, PeerMessage, Told } from './peers.ts'

/** Workers are the processes that serve together. */
export interface Workers {
  readonly gatewayUrl: string
  readonly apiUrl: string
  /** Has all of them read the configuration again. */
  reload(): void
  /** Has all of them finish, and waits for it. */
  close(): Promise<void>
}

/** A process that cannot answer is not waited for. */
const ANSWER_MS = 5_000

/** One that ends by itself is replaced, but not faster than this. */
const RESTART_MS = 1_000

const SLOT = 'WORKER_NUMBER'

/** checkWorkers refuses what would multiply limits, or change something in one process only. */
export function checkWorkers(count: number, { store, assignments }: Settings): void {
  if (count === 1) return
  if (store.kind === 'memory') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--workers ${count} cannot be had with store: memory: each process would count for itself, ` +
        `and clients would get up to ${count} times their limits. Use a store in Redis, or one worker.`,
    )
  }
  if (assignments.kind !== 'redis') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--workers ${count} needs assignments: redis, which is the default with a store in Redis: ` +
        'otherwise a tier that is given to a client would hold in one of the processes only.',
    )
  }
}

/**
 * forWorker are the settings of one of several processes: each counts its share while the store is
 * away, and writes decisions to a file of its own.
 */
export function forWorker(settings: Settings, count: number): Settings {
  if (count === 1) return settings
  const { store, decisionLog } = settings
  return {
    ...settings,
    store: { ...store, fleetSize: store.fleetSize * count },
    decisionLog: decisionLog && {
      ...decisionLog,
      file: decisionLog.file.replace(/(\.[^./\\]*)?$/, `.worker-${process.env[SLOT]}$1`),
    },
  }
}

/** toPrimary is how a worker reaches the process that started it. */
export const toPrimary: Channel = {
  // While all of them stop there may be nobody to tell.
  send: (message) => void (process.connected && process.send?.(message)),
  onMessage: (listener) => void process.on('message', listener),
}

/** startWorkers starts so many processes of this same command line, and waits until all serve. */
export async function startWorkers(count: number, logger: Logger): Promise<Workers> {
  // Figures may be NaN, which JSON would turn into null.
  cluster.setupPrimary({ serialization: 'advanced' })
  const running = new Set<Worker>()
  let isClosing = false

  function fork(slot: number): Worker {
    const worker = cluster.fork({ [SLOT]: String(slot) })
    running.add(worker)
    worker.on('message', (message: PeerMessage) => {
      if (message.sluice !== 'gather') return
      gather([...running], message.topic, message.about).then((all) =>
        worker.send({ sluice: 'gathered', id: message.id, all } satisfies PeerMessage),
      )
    })
    worker.once('exit', () => running.delete(worker))
    return worker
  }

  /** One that ends later is replaced; one that does not start ends the start. */
  function keep(worker: Worker, slot: number): void {
    worker.once('exit', (code, signal) => {
      if (isClosing) return
      logger.error({ worker: slot, code, signal }, 'a worker has ended; another takes its place')
      setTimeout(() => {
        if (!isClosing) keep(fork(slot), slot)
      }, RESTART_MS)
    })
  }

  const all = Array.from({ length: count }, (_, i) => fork(i + 1))
  const [first] = await Promise.all(all.map(ready)).catch((error) => {
    for (const worker of all) worker.process.kill('SIGKILL')
    throw error
  })
  for (const [i, worker] of all.entries()) keep(worker, i + 1)

  const tellAll = (signal: NodeJS.Signals) => {
    for (const worker of running) worker.process.kill(signal)
  }
  return {
    ...first,
    reload: () => tellAll('SIGHUP'),
    async close() {
      isClosing = true
      const ended = [...running].map(
        (worker) => new Promise((resolve) => worker.once('exit', resolve)),
      )
      tellAll('SIGTERM')
      await Promise.all(ended)
    },
  }
}

function ready(worker: Worker): Promise<{ gatewayUrl: string; apiUrl: string }> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message: PeerMessage) => {
      if (message.sluice === 'ready') resolve(message)
    })
    worker.once('exit', () => reject(new Error('a worker could not start')))
  })
}

let asks = 0

/** Asks all of them; one that ends meanwhile has nothing more to say. */
async function gather(workers: readonly Worker[], topic: string, about: unknown): Promise<Told[]> {
  const all = await Promise.all(workers.map((worker) => ask(worker, topic, about)))
  return all.filter((told) => told !== undefined)
}

function ask(worker: Worker, topic: string, about: unknown): Promise<Told | undefined> {
  asks += 1
  const id = String(asks)
  return new Promise((resolve) => {
    const listen = (message: PeerMessage) => {
      if (message.sluice === 'answer' && message.id === id) done(message.told)
    }
    const gone = () => done(undefined)
    const late = setTimeout(gone, ANSWER_MS)
    function done(told: Told | undefined): void {
      clearTimeout(late)
      worker.off('message', listen).off('exit', gone)
      resolve(told)
    }
    worker.on('message', listen).once('exit', gone)
    worker.send({ sluice: 'ask', id, topic, about } satisfies PeerMessage)
  })
}
