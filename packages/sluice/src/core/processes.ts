import { checkFlag } from './options.ts'
import { warnOnce } from './warn.ts'

/** The part of Node's `process` that shows whether there are other processes. */
interface OneProcess {
  readonly connected?: boolean
  readonly env?: Readonly<Record<string, string | undefined>>
  getBuiltinModule?(name: string): { readonly isWorker?: boolean } | undefined
}

/**
 * checkProcesses is for stores that keep rows in the memory of this process. It checks their option
 * `perProcess` and, unless that is true, warns once if this is one of several processes: each of
 * them would admit the whole limit.
 */
export function checkProcesses(where: string, perProcess: unknown): void {
  checkFlag(`${where}: perProcess`, perProcess)
  const { process } = globalThis as { process?: OneProcess }
  if (perProcess || !process || !isOneOfSeveral(process)) return
  warnOnce(
    'SLUICE_PER_PROCESS',
    'each of these processes (cluster, PM2) counts for itself: N of them admit N times the limit. ' +
      'Use a store that they share, such as redisStore(), or memoryStore({ perProcess: true }).',
  )
}

function isOneOfSeveral(process: OneProcess): boolean {
  const { pm_id, instances, NODE_APP_INSTANCE } = process.env ?? {}
  // PM2 starts even a single process as a worker, and sets the number of instances.
  if (pm_id) return Number(instances) > 1 || Number(NODE_APP_INSTANCE) > 0
  // A worker has a channel to its primary. Node takes the variable away that it is started with.
  return !!process.connected && !!process.getBuiltinModule?.('node:cluster')?.isWorker
}
