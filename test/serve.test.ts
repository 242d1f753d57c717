import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startRedis } from './redis/server.ts'
import { as, closeAll, json, serveUpstream } from './server/service.ts'
import { buildServer } from './threads/crew.ts'

beforeAll(buildServer, 60_000)

const folders: string[] = []
const children: ChildProcess[] = []
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
  await closeAll()
})

/** Runs the command as users do. `said` is its output so far. */
function sluice(...words: string[]) {
  const child = spawn(process.execPath, ['packages/server/bin/sluice.js', ...words])
  children.push(child)
  const run = { child, said: '', exit: once(child, 'exit').then(([code]) => code as number) }
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      run.said += data
    })
  }
  return run
}

/** Starts the service with a configuration, on free ports. */
async function serve(config: string, ...options: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  folders.push(folder)
  const file = join(folder, 'sluice.yaml')
  const write = (text: string) =>
    writeFileSync(file, `listen: 127.0.0.1:0\napi: 127.0.0.1:0\nkey: header:x-user\n${text}`)
  write(config)
  const run = sluice('serve', '--config', file, ...options)
  await expect.poll(() => run.said, { timeout: 30_000 }).toMatch(/^API +http/m)
  const url = (name: string) => new RegExp(`^${name} +(\\S+)`, 'm').exec(run.said)?.[1] ?? ''
  return { ...run, run, file, write, gateway: url('gateway'), api: url('API') }
}

const limitOf = async (url: string) =>
  (await fetch(url, as('alice'))).headers.get('x-ratelimit-limit')

describe('sluice serve', () => {
  it('reloads its file on SIGHUP and when it changes, unless the file is invalid', async () => {
    const { child, run, file, write, gateway } = await serve('tiers: { free: 5/1h }\n')
    expect(await limitOf(gateway)).toBe('5')
    write('tiers: { free: 6/1h }\n')
    await expect.poll(() => limitOf(gateway), { timeout: 5_000 }).toBe('6')
    write('tiers: { free: 7/1x }\n')
    await expect.poll(() => run.said, { timeout: 5_000 }).toContain('was not reloaded')
    expect(await limitOf(gateway)).toBe('6')
    truncateSync(file, 3_000_000_000)
    await expect.poll(() => run.said, { timeout: 5_000 }).toContain('it is larger than 1 MB')
    expect(await limitOf(gateway)).toBe('6')
    write('tiers: { free: 100/1h }\n')
    child.kill('SIGHUP')
    await expect.poll(() => limitOf(gateway), { timeout: 5_000 }).toBe('100')
    const { headers } = await fetch(gateway, as('bob'))
    expect(headers.get('x-ratelimit-remaining')).toBe('99')
  })

  it('warns about clients whose key no request can have', async () => {
    const { run, write } = await serve(
      'tiers: { free: 5/1h }\nclients: { alice: free }\nupstreams: { main: echo }\n',
    )
    await expect
      .poll(() => run.said)
      .toContain('no request can have the key \\"alice\\", so it applies')
    write('tiers: { free: 5/1h }\nclients: { bob: free }\nupstreams: { main: echo }\n')
    await expect.poll(() => run.said, { timeout: 5_000 }).toContain('can have the key \\"bob\\"')
  })

  it('does not warn about clients if only the API is used', async () => {
    const { child, run } = await serve('tiers: { free: 5/1h }\nclients: { alice: free }\n')
    child.kill('SIGTERM')
    await run.exit
    expect(run.said).toContain('finishing the requests in progress')
    expect(run.said).not.toContain('no request has')
  })

  it('keeps the tiers that operators assigned over a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
    folders.push(folder)
    const config = `tiers: { free: 5/1h, pro: 50/1h }\nassignments: ${join(folder, 'deep/a.json')}\n`
    const first = await serve(config)
    const path = '/v1/clients/x-user%3Aalice'
    await fetch(`${first.api}${path}/tier`, json({ tier: 'pro' }, 'PUT'))
    await fetch(`${first.api}/v1/clients/x-user%3Abob/rules`, json({ rules: ['7/1h'] }, 'PUT'))
    first.child.kill('SIGKILL')
    const { gateway } = await serve(config)
    expect(await limitOf(gateway)).toBe('50')
    expect((await fetch(gateway, as('bob'))).headers.get('x-ratelimit-limit')).toBe('7')
    writeFileSync(join(folder, 'deep/a.json'), '{ "tiers": 3 }')
    writeFileSync(join(folder, 'c.yaml'), config)
    const third = sluice('serve', '--config', join(folder, 'c.yaml'))
    expect(await third.exit).toBe(2)
    expect(third.said).toContain('is not a valid file of assignments')
  })

  it('finishes requests in flight on SIGTERM, and exits with 0', async () => {
    const upstream = await serveUpstream(async (_request, response) => {
      await sleep(300)
      response.end('done')
    })
    const { child, exit, gateway } = await serve(
      `tiers: { free: 5/1h }\nupstreams: { main: '${upstream.url}' }\n`,
    )
    const under = fetch(gateway, as('alice'))
    await sleep(100)
    child.kill('SIGTERM')
    await sleep(50)
    // SIGHUP would end a process that does not handle it.
    child.kill('SIGHUP')
    expect(await (await under).text()).toBe('done')
    expect(await exit).toBe(0)
  })

  it('exits with 2 for a usage error, and with 1 if its port is in use', async () => {
    const missing = sluice('serve', '--config', '/there/is/none.yaml')
    expect(await missing.exit).toBe(2)
    expect(missing.said).toContain('cannot read')
    const { gateway } = await serve('tiers: { free: 5/1h }\n')
    const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
    folders.push(folder)
    const file = join(folder, 'a.json')
    writeFileSync(file, JSON.stringify({ listen: new URL(gateway).host, tiers: { free: '5/1h' } }))
    const second = sluice('serve', '--config', file)
    expect(await second.exit).toBe(1)
    expect(second.said).toMatch(/^sluice: cannot listen at 127.0.0.1:\d+: the port is in use/)
    expect(second.said).not.toContain('    at ')
  })

  it('keeps deciding when Redis is killed, and when one of two services is', async () => {
    const redis = await startRedis()
    try {
      const config = `tiers: { free: 5/1h }\nstore: redis://127.0.0.1:${redis.port}\nupstreams: { demo: echo }\n`
      const [first, second] = [await serve(config), await serve(config)]
      const ask = async (url: string, user: string) => (await fetch(url, as(user))).status
      for (let i = 0; i < 3; i += 1) expect(await ask(first.gateway, 'alice')).toBe(200)
      first.child.kill('SIGKILL')
      const after: number[] = []
      for (let i = 0; i < 4; i += 1) after.push(await ask(second.gateway, 'alice'))
      expect(after).toEqual([200, 200, 429, 429])
      await redis.kill()
      // By default each decides by itself then, starting full.
      const alone: number[] = []
      for (let i = 0; i < 7; i += 1) alone.push(await ask(second.gateway, 'alice'))
      expect(alone).toEqual([200, 200, 200, 200, 200, 429, 429])
    } finally {
      await redis.stop()
    }
  })
})

describe('sluice serve --workers', () => {
  /** Sends each request on its own connection, so that it may reach any worker. */
  const ask = (url: string, user: string) =>
    fetch(url, { headers: { 'x-user': user, connection: 'close' } })

  it('is one service: one limit, one set of metrics, one reload', async () => {
    const redis = await startRedis()
    try {
      const store = `store: { url: redis://127.0.0.1:${redis.port}, timeoutMs: 2000 }\nupstreams: { demo: echo }\n`
      const { child, exit, write, gateway, api } = await serve(
        `tiers: { free: 10/1h, pro: 50/1h }\n${store}`,
        ...['--workers', '2', '--log-level', 'silent'],
      )
      const all = await Promise.all(Array.from({ length: 40 }, () => ask(gateway, 'alice')))
      expect(all.filter(({ status }) => status === 200)).toHaveLength(10)
      const text = async () => (await fetch(`${api}/metrics`)).text()
      const counts = [...(await text()).matchAll(/^sluice_decisions_total\{.*\} (\d+)$/gm)]
      expect(counts.map(([, count]) => Number(count)).sort((a, b) => a - b)).toEqual([10, 30])
      const top = await (await fetch(`${api}/v1/top`)).json()
      expect(top).toMatchObject({ keys: [{ key: 'x-user:alice', refused: 30 }] })

      const tier = `${api}/v1/clients/x-user%3Aalice/tier`
      await fetch(tier, json({ tier: 'pro' }, 'PUT'))
      const limits = async (user: string) => {
        const eight = await Promise.all(Array.from({ length: 8 }, () => ask(gateway, user)))
        return [...new Set(eight.map(({ headers }) => headers.get('x-ratelimit-limit')))]
      }
      await expect.poll(() => limits('alice'), { timeout: 5_000 }).toEqual(['50'])
      write(`tiers: { free: 20/1h, pro: 50/1h }\n${store}`)
      expect((await fetch(`${api}/v1/reload`, { method: 'POST' })).status).toBe(200)
      expect(await limits('bob')).toEqual(['20'])
      write('tiers: 3')
      const bad = await fetch(`${api}/v1/reload`, { method: 'POST' })
      expect(bad.status).toBe(422)
      expect(await bad.json()).toMatchObject({ problems: [{ path: 'tiers' }] })

      await redis.kill()
      // Each counts its share: together they admit what one server would.
      const lone = await Promise.all(Array.from({ length: 60 }, () => ask(gateway, 'carol')))
      expect(lone.filter(({ status }) => status === 200)).toHaveLength(20)
      child.kill('SIGTERM')
      expect(await exit).toBe(0)
    } finally {
      await redis.stop()
    }
  })

  it('streams the decisions of all workers', async () => {
    const redis = await startRedis()
    try {
      const { gateway, api } = await serve(
        `tiers: { free: 10/1h }\nstore: { url: redis://127.0.0.1:${redis.port}, timeoutMs: 2000 }\nupstreams: { demo: echo }\n`,
        ...['--workers', '2', '--log-level', 'silent'],
      )
      const watch = new AbortController()
      const { signal } = watch
      const { body } = await fetch(`${api}/v1/live?key=x-user%3Aalice`, { signal })
      let text = ''
      const done = (async () => {
        for await (const piece of body!.pipeThrough(new TextDecoderStream())) text += piece
      })().catch(() => {})
      await expect.poll(() => text).toContain('event: start')
      await Promise.all(Array.from({ length: 40 }, () => ask(gateway, 'alice')))
      const sum = (pattern: RegExp) =>
        [...text.matchAll(pattern)].reduce((all, [, count]) => all + Number(count), 0)
      await expect.poll(() => sum(/"refused":(\d+)/g), { timeout: 5_000 }).toBe(30)
      expect(sum(/"allowed":(\d+)/g)).toBe(10)
      const told = () => text.match(/"outcome"/g)?.length ?? 0
      await expect.poll(() => told() + sum(/"leftOut":(\d+)/g), { timeout: 5_000 }).toBe(40)
      watch.abort()
      await done
    } finally {
      await redis.stop()
    }
  })

  it('replaces a worker that exits, and no worker outlives the primary', async () => {
    const redis = await startRedis()
    try {
      const config = `tiers: { free: 10/1h }\nstore: redis://127.0.0.1:${redis.port}\nupstreams: { demo: echo }\n`
      const { child, run, gateway, api } = await serve(config, '--workers', '2')
      const pids = () => [
        ...new Set([...run.said.matchAll(/"pid":(\d+)[^\n]*"listening"/g)].map(([, p]) => +p)),
      ]
      await expect.poll(pids).toHaveLength(2)
      const total = async () => {
        const text = await (await fetch(`${api}/metrics`)).text()
        // On a busy machine Redis may be late, and some are decided without it.
        const counts = [...text.matchAll(/^sluice_decisions_total\{.*\} (\d+)$/gm)]
        return counts.reduce((sum, [, count]) => sum + Number(count), 0)
      }
      await Promise.all(Array.from({ length: 8 }, (_, i) => ask(gateway, `user-${i}`)))
      expect(await total()).toBe(8)
      // Many questions are under way while it ends.
      const scrapes = Array.from({ length: 30 }, () =>
        fetch(`${api}/metrics`, { signal: AbortSignal.timeout(3_000) }).catch(() => {}),
      )
      process.kill(pids()[0], 'SIGKILL')
      await expect.poll(() => run.said).toContain('worker exited')
      await Promise.all(scrapes)
      expect(await total()).toBe(8)
      expect((await ask(gateway, 'alice')).status).toBe(200)
      await expect.poll(pids, { timeout: 30_000 }).toHaveLength(3)
      expect((await ask(gateway, 'alice')).headers.get('x-ratelimit-remaining')).toBe('8')
      child.kill('SIGKILL')
      const isThere = (pid: number) => {
        try {
          return process.kill(pid, 0)
        } catch {
          return false
        }
      }
      await expect.poll(() => pids().filter(isThere), { timeout: 30_000 }).toEqual([])
    } finally {
      await redis.stop()
    }
  })

  it('refuses to start if it would multiply limits', async () => {
    const alone = sluice('serve', '--workers', '2')
    expect(await alone.exit).toBe(2)
    expect(alone.said).toContain('clients would get up to 2 times their limits')
    const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
    folders.push(folder)
    const file = join(folder, 'a.yaml')
    writeFileSync(file, 'tiers: { free: 1/1s }\nstore: redis://127.0.0.1:1\nassignments: a.json\n')
    const split = sluice('serve', '--workers', '2', '--config', file)
    expect(await split.exit).toBe(2)
    expect(split.said).toContain('needs assignments: redis')
  })
})

describe('sluice check', () => {
  it('asks a service once, and reports by its exit code', async () => {
    const { api } = await serve('tiers: { free: 1/1h }\n')
    const first = sluice('check', 'alice', '--api', api)
    expect(await first.exit).toBe(0)
    expect(JSON.parse(first.said)).toMatchObject({ allowed: true, remaining: 0 })
    const second = sluice('check', 'alice', '--api', api)
    expect(await second.exit).toBe(1)
    const wrong = sluice('check', 'alice', '--api', api, '--cost', 'many')
    expect(await wrong.exit).toBe(2)
  })
})
