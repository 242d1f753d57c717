import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readAssignments, writeAssignments } from './assignments-file.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-assigned-'))
  file = join(folder, 'assignments.json')
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('a file of assignments', () => {
  it('is read as it was written, with any client key, and is private', async () => {
    const kept = {
      tiers: new Map([
        ['alice', 'pro'],
        ['__proto__', 'free'],
      ]),
      rules: new Map([['a "b"', ['5/1s', '9/1m fixed-window']]]),
    }
    await writeAssignments(file, kept)
    expect(await readAssignments(file)).toEqual(kept)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder)).toEqual(['assignments.json'])
  })

  it('may be missing', async () =>
    expect(await readAssignments(file)).toEqual({ tiers: new Map(), rules: new Map() }))

  it.each([
    '',
    '{}',
    '{"tiers":{},"rules":null}',
    '{"tiers":{"alice":1},"rules":{}}',
    '{"tiers":{},"rules":{"alice":"5/1s"}}',
    '{"tiers":{},"rules":{"alice":["5/1s","6/1s"]}}',
    '{"tiers":{},"rules":{},"more":{}}',
  ])('is refused, and left as it is, with %j', async (text) => {
    writeFileSync(file, text)
    await expect(readAssignments(file)).rejects.toMatchObject({
      code: 'SLUICE_OPTION',
      message: expect.stringContaining(`${file} is not a valid file of assignments`),
    })
    expect(readFileSync(file, 'utf8')).toBe(text)
  })
})
