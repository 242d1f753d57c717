// @ts-check
// A thread that stalls during a decision while it holds the lock.
import { parentPort, workerData } from 'node:worker_threads'
import { parseRule } from 'sluice'
import { openDirectory } from '../../packages/sluice/dist/stores/shared-memory/directory.js'
import { createSharedTable } from '../../packages/sluice/dist/stores/shared-memory/shared-table.js'

const { handle, control, key, cost } = workerData
const shared = new Int32Array(control)
const time = new BigInt64Array(control, 64, 1)
const rules = [parseRule('100/1h')]

let stalls = 1
const locked = () => {
  if (stalls === 0) return
  stalls -= 1
  Atomics.add(shared, 0, 1)
  Atomics.wait(shared, 1, 0)
}
// The table exists already, so the arguments of the claim are ignored.
const claimed = openDirectory(handle.buffer).claim('stall', [])
const table = createSharedTable(claimed, [rules[0].algorithm], () => 0, locked)
const nowUs = Number(Atomics.load(time, 0))
parentPort?.postMessage(table.allow(table.use(rules), key, cost, nowUs))
