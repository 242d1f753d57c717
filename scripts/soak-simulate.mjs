// npm run soak -- --parts simulate: `sluice simulate` must use little memory on a large log of many
// clients.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

/**
 * soakSimulate makes a log of `gib` GiB, uncompressed, and rejects if the command loses a
 * request or takes more memory than `mostMb`.
 * @param {{ gib: number, clients: number, mostMb: number }} options
 */
export async function soakSimulate({ gib, clients, mostMb }) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-soak-'))
  try {
    const file = join(folder, 'access.log.gz')
    const counts = { lines: 0 }
    const text = Readable.from(log(gib * 2 ** 30, clients, counts))
    await pipeline(text, createGzip({ level: 1 }), createWriteStream(file))
    const packedMb = Math.round((await stat(file)).size / 1e6)
    const told = `${gib} GiB, packed ${packedMb} MB, ${counts.lines} lines`
    console.log(`soak: a log of ${told}, at most ${clients} clients`)
    const { report, seconds, peakMb } = await simulate(file)
    console.log(`soak: simulated in ${seconds} s, at most ${peakMb} MB of memory`)
    const { traffic, ruleSets } = report
    const whole = ruleSets.every(({ allowed, refused }) => allowed + refused === counts.lines)
    if (traffic.requests !== counts.lines || !whole) throw new Error('requests were lost')
    if (peakMb > mostMb) throw new Error(`it took ${peakMb} MB, and may take ${mostMb}`)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Yields an access log block by block: a few clients are frequent, most are rare. */
function* log(bytes, clients, counts) {
  let seed = 1
  const random = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return seed / 2 ** 32
  }
  for (let made = 0, ms = Date.UTC(2026, 10, 16); made < bytes; ) {
    let block = ''
    while (block.length < 65_536) {
      ms += random() * 20
      const time = new Date(ms).toISOString()
      const client = Math.floor(clients * random() ** 3)
      const address = [10, client >> 16, (client >> 8) & 255, client & 255].join('.')
      const item = Math.floor(random() * 1e9).toString(36)
      block += `${address} - - [${time.slice(8, 10)}/Nov/2026:${time.slice(11, 19)} +0000] "GET /items/${item}?from=search HTTP/1.1" 200 ${client} "https://example.com/" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36"\n`
      counts.lines += 1
    }
    made += block.length
    yield block
  }
}

/** Runs the command. The process itself reports its peak memory. */
async function simulate(file) {
  const tell = 'process.on("exit",()=>console.error(process.resourceUsage().maxRSS))'
  const startedMs = performance.now()
  const child = spawn(
    process.execPath,
    [
      ...['--import', `data:text/javascript,${tell}`, 'packages/server/bin/sluice.js', 'simulate'],
      ...[file, '--json', '--rule', '60/1m burst 20', '--rule', '600/1h fixed-window'],
      ...['--rule', '5/1s, 100/1m sliding-window-counter'],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`sluice simulate ended with ${code}: ${errors}`)
  return {
    report: JSON.parse(output),
    seconds: Math.round((performance.now() - startedMs) / 100) / 10,
    peakMb: Math.round((Number(errors) * 1_024) / 1e6),
  }
}
