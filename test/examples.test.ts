import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { buildLibrary } from './threads/crew.ts'

beforeAll(buildLibrary, 60_000)

describe('examples', () => {
  it('threads: four servers admit 100 requests, not one more', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['examples/threads/main.mjs'])
    expect(stdout).toMatch(/^4 threads listen .*\n100 of 400 requests were allowed\n$/)
  })
})
