import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { createLimiter, parseRule } from 'sluice'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDecisionLog } from './decision-log.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-decisions-'))
  file = join(folder, 'decisions.jsonl')
})
afterEach(() => rmSync(folder, { recursive: true }))

const limiter = createLimiter(parseRule('2/1h'))
const logger = pino({ level: 'silent' })
const decided = (key: string, shadowed = false) => {
  const decision = limiter.check(key)
  return {
    ...{ key, route: '/search', tier: 'free', cost: 1 },
    ...{ decision, shadowed, seconds: undefined },
  }
}

describe('openDecisionLog', () => {
  it('writes every decision, and appends to an existing file', async () => {
    writeFileSync(file, '{"before":1}\n')
    const log = openDecisionLog({ file, maxBytes: 1_048_576, files: 5 }, logger)
    for (const key of ['alice', 'alice', 'alice', 'a "quoted"\nkey']) log.note(decided(key))
    log.note(decided('alice', true))
    await log.close()
    const [before, ...lines] = readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(before).toEqual({ before: 1 })
    expect(lines.map(({ key, outcome }) => [key, outcome])).toEqual([
      ['alice', 'allowed'],
      ['alice', 'allowed'],
      ['alice', 'refused'],
      ['a "quoted"\nkey', 'allowed'],
      ['alice', 'shadowed'],
    ])
    expect(lines[2]).toMatchObject({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      route: '/search',
      tier: 'free',
      cost: 1,
      rule: 'token-bucket',
      remaining: 0,
      source: 'store',
    })
    expect(lines[2].retryAfterMs).toBeGreaterThan(1_700_000)
  })

  it('rotates large files, keeps the configured number, and loses none of their lines', async () => {
    const log = openDecisionLog({ file, maxBytes: 1_048_576, files: 2 }, logger)
    const one = decided('x'.repeat(900))
    for (let i = 0; i < 4_000; i += 1) {
      log.note({ ...one, cost: i })
      // A disk takes a while.
      if (i % 500 === 499) await new Promise((resolve) => setTimeout(resolve, 30))
    }
    await log.close()
    const names = readdirSync(folder).sort()
    expect(names).toEqual(['decisions.jsonl', 'decisions.jsonl.1', 'decisions.jsonl.2'])
    // The file has the keys of clients, so it is private.
    const modes = names.map((name) => statSync(join(folder, name)).mode & 0o777)
    expect(modes).toEqual([0o600, 0o600, 0o600])
    const texts = names.toReversed().map((name) => readFileSync(join(folder, name), 'utf8'))
    const costs = texts.flatMap((text) =>
      text
        .trimEnd()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line).cost),
    )
    const first = 4_000 - costs.length
    expect(costs.length).toBeGreaterThan(1_500)
    expect(costs).toEqual(Array.from({ length: costs.length }, (_, i) => first + i))
  })

  it('throws at once when the file cannot be opened', () => {
    writeFileSync(join(folder, 'taken'), '')
    const settings = { file: join(folder, 'taken', 'x.jsonl'), maxBytes: 1_048_576, files: 2 }
    expect(() => openDecisionLog(settings, logger)).toThrow(/ENOTDIR|EEXIST/)
    const nowhere = { ...settings, file: '/proc/nowhere/x.jsonl' }
    expect(() => openDecisionLog(nowhere, logger)).toThrow(/ENOENT|EACCES/)
  })

  it('begins a new file when it was removed', async () => {
    const log = openDecisionLog({ file, maxBytes: 1_048_576, files: 2 }, logger)
    log.note(decided('before'))
    await expect.poll(() => readFileSync(file, 'utf8')).toContain('before')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    rmSync(file)
    await expect
      .poll(
        () => {
          log.note(decided('after'))
          return existsSync(file) && readFileSync(file, 'utf8').includes('after')
        },
        { timeout: 10_000, interval: 200 },
      )
      .toBe(true)
    await log.close()
  })
})
