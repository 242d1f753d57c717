// Four threads, each a server, with one exact limit of 100 requests a minute per client:
//
//     npm run build
//     node examples/threads/main.mjs           sends 400 requests and counts
//     node examples/threads/main.mjs --serve   keeps serving, for curl
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { sharedMemoryStore } from 'sluice/shared-memory'

const store = sharedMemoryStore({ maxKeys: 100_000 })
const threads = Array.from(
  { length: 4 },
  () => new Worker(new URL('./server.mjs', import.meta.url), { workerData: store.handle }),
)
const ports = await Promise.all(threads.map(async (thread) => (await once(thread, 'message'))[0]))
console.log(`4 threads listen on the ports ${ports.join(', ')}`)

if (!process.argv.includes('--serve')) {
  const answers = await Promise.all(
    Array.from({ length: 400 }, (_, i) => fetch(`http://127.0.0.1:${ports[i % 4]}/`)),
  )
  const allowed = answers.filter(({ status }) => status === 200).length
  console.log(`${allowed} of ${answers.length} requests were allowed`)
  process.exit()
}
