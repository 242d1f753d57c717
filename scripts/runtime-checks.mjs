// @ts-check

/**
 * A check on a runtime: `run` throws if it fails.
 * @typedef {{ steps: number, redisPort: number, bridge: { url: string, token: string } }} Settings
 * @typedef {{ readonly name: string, readonly onServers?: boolean, run(url: string, settings: Settings): Promise<void> }} Check
 */

/** @type {readonly Check[]} */
export const checks = [
  suite('memoryStore', 'memory'),
  suite('compactStore', 'compact'),
  suite('sharedMemoryStore', 'shared-memory', true),
  { name: 'limiters at module scope', run: firstCalls },
  { name: 'sluice/fetch', run: (url) => refusesTheFourth(`${url}/fetch`) },
  { name: 'sluice/hono', run: (url) => refusesTheFourth(`${url}/hono`) },
  suite('redisStore, ioredis', 'ioredis', true),
  suite('redisStore, node-redis', 'node-redis', true),
  { name: 'redisStore, @upstash/redis', run: overHttp },
]

/**
 * The conformance suite on a store.
 * @type {(name: string, path: string, onServers?: boolean) => Check}
 */
function suite(name, path, onServers) {
  return {
    name,
    ...(onServers ? { onServers } : {}),
    async run(url, { steps, redisPort }) {
      const response = await fetch(`${url}/${path}?steps=${steps}&port=${redisPort}`)
      const { passed, failures } = JSON.parse(await response.text())
      if (failures.length > 0) throw new Error(failures.join('\n'))
      if (!(passed > 50)) throw new Error(`only ${passed} cases ran`)
    },
  }
}

/** @param {string} url */
async function firstCalls(url) {
  const { all, offMs } = JSON.parse(await (await fetch(`${url}/first-calls`)).text())
  const isRight = all.every(
    (/** @type {{ burst: boolean[], waitedMs: number }} */ { burst, waitedMs }) =>
      burst.join() === 'true,true,true,false' && waitedMs >= 90,
  )
  if (!isRight || all.length === 0 || Math.abs(offMs) > 10_000) {
    throw new Error(JSON.stringify({ all, offMs }))
  }
}

/** @param {string} url */
async function refusesTheFourth(url) {
  const responses = []
  for (let i = 0; i < 4; i += 1) responses.push(await fetch(url))
  const statuses = responses.map(({ status }) => status).join()
  const seconds = Number(responses[3].headers.get('retry-after'))
  if (statuses !== '200,200,200,429' || !(seconds > 3_500)) {
    throw new Error(`statuses ${statuses}, Retry-After ${seconds}`)
  }
}

/** @type {Check['run']} */
async function overHttp(url, { bridge: { url: bridgeUrl, token } }) {
  const body = JSON.stringify({ url: bridgeUrl, token })
  const response = await fetch(`${url}/over-http`, { method: 'POST', body })
  const allowed = await response.text()
  if (allowed !== '10') throw new Error(`allowed: ${allowed}`)
}
