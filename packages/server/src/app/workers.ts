import cluster, { type Worker } from 'node:cluster'
import type { Logger } from 'pino'
import { SluiceError } from 'sluice'
import { type Figures, sumOfCounts } from '../metrics/metrics.ts'
import type { Settings } from '../settings.ts'
import { StartError } from '../start-error.ts'
import type { Channel, PeerMessage, Reply } from './peers.ts'

/** Workers are the processes that serve together. */
export interface Workers {
  readonly gatewayUrl: string
  readonly apiUrl: string
  /** Makes every worker reload the configuration. */
  reload(): void
  /** Stops the workers, and waits until they have finished their requests. */
  close(): Promise<void>
}

/** The longest time that an answer of a worker is waited for. */
const ANSWER_MS = 5_000

/** The delay before a worker that has exited is replaced. */
const RESTART_MS = 1_000

const SLOT = 'WORKER_NUMBER'

/** checkWorkers refuses settings that would multiply limits, or change one process only. */
export function checkWorkers(count: number, { store, assignments }: Settings): void {
  if (count === 1) return
  if (store.kind === 'memory') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--workers ${count} does not work with store: memory: each process would count for itself, ` +
        `and clients would get up to ${count} times their limits. Use a store in Redis, or one worker.`,
    )
  }
  if (assignments.kind !== 'redis') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--workers ${count} needs assignments: redis, which is the default with a store in Redis: ` +
        'otherwise a tier assigned to a client would apply in one of the processes only.',
    )
  }
}

/**
 * forWorker are the settings of one of several processes: it counts its share of the limits while
 * the store is unavailable, and writes decisions to its own file.
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

/** toPrimary is the channel from a worker to the primary. */
export const toPrimary: Channel = {
  // During shutdown the primary may already have exited.
  send: (message) => void (process.connected && process.send?.(message)),
  onMessage: (listener) => void process.on('message', listener),
}

/** startWorkers starts `count` processes with this command line, and waits until all are ready. */
export async function startWorkers(count: number, logger: Logger): Promise<Workers> {
  // Numbers may be NaN, which JSON would turn into null.
  cluster.setupPrimary({ serialization: 'advanced' })
  const running = new Set<Worker>()
  const figures = createKeptFigures()
  let isStarting = true
  let isClosing = false

  /** Replaces a worker that exits; during the start, a worker that exits fails the start. */
  function fork(slot: number): Worker {
    const worker = cluster.fork({ [SLOT]: String(slot) })
    running.add(worker)
    // Each concurrent scrape adds a listener.
    worker.setMaxListeners(0)
    // A send to a worker that has just exited; its `exit` event is handled below.
    worker.on('error', () => {})
    worker.once('disconnect', () => running.delete(worker))
    worker.on('message', async (message: PeerMessage) => {
      if (message.sluice !== 'gather') return
      const { id, topic, about } = message
      const all = await gather([...running], topic, about)
      sendTo(worker, {
        sluice: 'gathered',
        id,
        all: topic === 'metrics' ? figures.all(all) : repliesOf(all),
      })
    })
    worker.once('exit', (code, signal) => {
      running.delete(worker)
      figures.ended(worker)
      if (isClosing || isStarting) return
      logger.error({ worker: slot, code, signal }, 'worker exited, starting another')
      setTimeout(() => {
        if (!isClosing) fork(slot)
      }, RESTART_MS)
    })
    return worker
  }

  const all = Array.from({ length: count }, (_, i) => fork(i + 1))
  const [first] = await Promise.all(all.map(ready)).catch((error) => {
    isClosing = true
    for (const worker of all) worker.process.kill('SIGKILL')
    throw error
  })
  isStarting = false
  // A worker may have exited while others were still starting.
  for (const [i, worker] of all.entries()) if (worker.isDead()) fork(i + 1)

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
    worker.once('exit', () => reject(new StartError('a worker could not start.')))
  })
}

function sendTo(worker: Worker, message: PeerMessage): void {
  if (worker.isConnected()) worker.send(message, () => {})
}

/** Answered is the answer of a worker; undefined if it has exited or takes too long. */
interface Answered {
  readonly worker: Worker
  readonly reply: Reply | undefined
}

function repliesOf(all: readonly Answered[]): Reply[] {
  return all.map(({ reply }) => reply).filter((each) => each !== undefined)
}

async function gather(
  workers: readonly Worker[],
  topic: string,
  about: unknown,
): Promise<Answered[]> {
  return Promise.all(
    workers.map(async (worker) => ({ worker, reply: await ask(worker, topic, about) })),
  )
}

let asks = 0

function ask(worker: Worker, topic: string, about: unknown): Promise<Reply | undefined> {
  asks += 1
  const id = String(asks)
  return new Promise((resolve) => {
    const listen = (message: PeerMessage) => {
      if (message.sluice === 'answer' && message.id === id) done(message.reply)
    }
    const gone = () => done(undefined)
    const late = setTimeout(gone, ANSWER_MS)
    function done(reply: Reply | undefined): void {
      clearTimeout(late)
      worker.off('message', listen).off('disconnect', gone)
      resolve(reply)
    }
    worker.on('message', listen).once('disconnect', gone)
    sendTo(worker, { sluice: 'ask', id, topic, about })
  })
}

/**
 * Counters must not decrease: the last known counts of a worker stay included after it has exited,
 * and while its answer is late.
 */
function createKeptFigures() {
  const last = new Map<Worker, Figures>()
  let past: Figures[] = []
  return {
    all(answers: readonly Answered[]): Reply[] {
      for (const { worker, reply } of answers) {
        if (reply && 'value' in reply && !worker.isDead()) last.set(worker, reply.value as Figures)
      }
      return [...last.values(), ...past].map((value) => ({ value }))
    },
    ended(worker: Worker): void {
      const figures = last.get(worker)
      last.delete(worker)
      if (figures) past = [sumOfCounts([...past, figures])]
    },
  }
}
