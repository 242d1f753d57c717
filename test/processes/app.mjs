// @ts-check
// A program that keeps limits in memory: a primary with the given number of workers, or one process.
import cluster from 'node:cluster'
import { createLimiter, memoryStore, tokenBucket } from 'sluice'
import { sharedMemoryStore } from 'sluice/shared-memory'

const [workers, perProcess] = [Number(process.argv[2]), process.argv[3] === 'per process']
const rule = tokenBucket({ limit: 1, per: '1m' })
if (workers > 0 && cluster.isPrimary) {
  for (let i = 0; i < workers; i += 1) cluster.fork()
} else if (perProcess) {
  createLimiter(rule, { store: memoryStore({ perProcess }) })
} else {
  createLimiter(rule)
  createLimiter(rule, { store: memoryStore() })
  sharedMemoryStore({ maxKeys: 1 })
}
if (cluster.isWorker) cluster.worker?.disconnect()
