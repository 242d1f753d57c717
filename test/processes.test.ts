import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const app = fileURLToPath(new URL('./processes/app.mjs', import.meta.url))

/** Runs the program, and counts its warnings. */
async function warnings(args: string[], env: Record<string, string> = {}): Promise<number> {
  const options = { env: { ...process.env, ...env } }
  const { stderr } = await promisify(execFile)(process.execPath, [app, ...args], options)
  return stderr.split('[SLUICE_PER_PROCESS] SluiceWarning: each of these processes').length - 1
}

describe('limits in the memory of one of several processes', () => {
  it('cause one warning in each worker of a cluster, and none in its primary', async () =>
    expect(await warnings(['2'])).toBe(2))

  it('cause no warning with perProcess', async () =>
    expect(await warnings(['2', 'per process'])).toBe(0))

  it('cause no warning in a single process', async () => expect(await warnings(['0'])).toBe(0))

  // What PM2 5.4 sets: `pm_id` in all modes, `instances` at the start, NODE_APP_INSTANCE also after
  // `pm2 scale`.
  it.each([
    [{ instances: '1', NODE_APP_INSTANCE: '0' }, 0],
    [{ instances: '2', NODE_APP_INSTANCE: '0' }, 1],
    [{ instances: '1', NODE_APP_INSTANCE: '1' }, 1],
  ])('cause a warning under PM2 if it starts several processes, %o', async (env, count) =>
    expect(await warnings(['0'], { pm_id: '3', ...env })).toBe(count),
  )

  it('cause no warning if PM2 runs one process in cluster mode', async () =>
    expect(await warnings(['1'], { pm_id: '3', instances: '1', NODE_APP_INSTANCE: '0' })).toBe(0))
})
