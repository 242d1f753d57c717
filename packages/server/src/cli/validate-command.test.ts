import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { demoConfig } from '../config/demo-config.ts'
import { validateCommand } from './validate-command.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-validate-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function run(...args: string[]) {
  let out = ''
  const notes: string[] = []
  const io = {
    input: () => process.stdin,
    inputIsTerminal: false,
    write: async (text: string) => {
      out += text
    },
    note: (line: string) => notes.push(line),
  }
  const error = await validateCommand.run(args, io).then(
    () => undefined,
    (reason) => reason,
  )
  return { out, notes, error }
}

function fileWith(text: string): string {
  const file = join(folder, 'a.yaml')
  writeFileSync(file, text)
  return file
}

it('prints the period of a rule that follows the calendar', async () => {
  const yaml =
    'tiers:\n  free: 5000/month calendar-window\nupstreams:\n  main: http://127.0.0.1:1\n'
  const { out } = await run(fileWith(yaml))
  expect(out).toContain(': 5000 per month (calendar-window)\n')
  const zoned = yaml.replace('calendar-window', 'zone Europe/Berlin startsOn 15')
  expect((await run(fileWith(zoned))).out).toContain(
    ': 5000 per month zone Europe/Berlin startsOn 15 (calendar-window)\n',
  )
})

it('prints a summary of a valid file', async () => {
  const file = fileWith(demoConfig)
  expect(await run(file)).toEqual({
    out: `${file} is valid.

Tiers:
  free (default): 60 in 1m, at most 20 at once (token-bucket)
  pro: 600 in 1m, at most 100 at once (token-bucket) and 100000 in 1d (fixed-window)
  internal: unlimited
Clients: 2 in a listed tier, 0 with overrides

Routes (the first match applies):
  search: /search/** (the tier's rules, by address, cost 5, to demo)
  health: /health (open, to demo)
  everything: /** (the tier's rules, by address, to demo)

Store: memory
Gateway: 127.0.0.1:8080
API: 127.0.0.1:8081
Admin tokens: none, so only this machine may call the API
`,
    notes: [],
    error: undefined,
  })
})

it('prints that the gateway answers 404 to requests that no route matches', async () => {
  const yaml = (path: string) =>
    `tiers: { a: 1/1s }\nupstreams: { main: 'http://127.0.0.1:1' }\nroutes: [{ path: ${path} }]\n`
  expect((await run(fileWith(yaml('/api/**')))).out).toContain(
    "  /api/** (the tier's rules, by address, to main)\n" +
      '  Other requests: 404, because no route matches them. A last route /** would.\n',
  )
  expect((await run(fileWith(yaml("'/**'")))).out).not.toContain('Other requests')
})

it('prints every problem with its place, and fails', async () => {
  const file = fileWith('tiers: { a: 1/1s }\ndefaultTier: b\nheaders: [y]\n')
  const { out, notes, error } = await run(file)
  expect(out).toBe('')
  expect(notes).toEqual([
    `${file}:2:14  defaultTier: there is no tier "b". Did you mean a?`,
    `${file}:3:11  headers[0]: must be x, draft-6, draft-7 or draft-11; got "y"`,
  ])
  expect(error).toMatchObject({ code: 'SLUICE_OPTION', message: `${file} has 2 problems.` })
})

it('does not print the password of a store', async () => {
  const { out } = await run(fileWith('tiers: { a: 1/1s }\nstore: redis://me:hunter2@db:6379'))
  expect(out).toContain('Store: redis at db:6379, on failure: local')
  expect(out).not.toContain('hunter2')
})

it('prints how many admin tokens there are, and none of them', async () => {
  const tokens = ['a-secret-of-22-letters', { token: 'another-secret-of-mine', access: 'read' }]
  const told = async (list: unknown[]) =>
    (await run(fileWith(JSON.stringify({ tiers: { a: '1/1s' }, admin: { tokens: list } })))).out
  expect(await told(tokens)).toContain('Admin tokens: 2, 1 of them read-only\n')
  expect(await told(tokens)).not.toContain('secret')
  expect(await told(tokens.slice(0, 1))).toContain('Admin tokens: 1\n')
})

it('prints help and the schema', async () => {
  expect((await run('--help')).out).toMatch(/^Usage: sluice validate FILE/)
  expect(JSON.parse((await run('--schema')).out)).toMatchObject({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    required: ['tiers'],
  })
})

it('requires exactly one readable file', async () => {
  expect((await run()).error.message).toContain('validate checks one file, got none')
  expect((await run('a', 'b')).error.message).toContain('got 2')
  expect((await run(join(folder, 'missing'))).error.message).toContain('ENOENT')
  expect((await run('--no')).error.code).toBe('SLUICE_OPTION')
})

it('warns of clients whose key no request can have', async () => {
  const file = fileWith(`tiers: { free: 60/1m, pro: 600/1m }
key: api-key:x-api-key
clients: { x-api-key:alice: pro, 192.0.2.1: pro }
overrides: { alice: 5/1s }
`)
  const { out, notes, error } = await run(file)
  expect(error).toBeUndefined()
  expect(out).toContain('is valid.')
  expect(notes).toEqual([
    `${file}: warning: no request can have the key "x-api-key:alice", "alice", so it applies only to callers of the API that send it.`,
    '  Keys of requests look like: key:HASH (sluice key --api-key - prints it). See docs/reference/config.md, Keys.',
  ])
})

it.each([
  ['header:Authorization', 'header:authorization', 'api-key:authorization or jwt'],
  ['[header:x-api-key, route]', 'header:x-api-key', 'api-key:x-api-key'],
])('warns of a key that exposes secrets: %s', async (key, named, instead) => {
  const file = fileWith(`tiers: { a: 1/1s }\nkey: ${key}\n`)
  const { out, notes } = await run(file)
  expect(out).toContain('is valid.')
  expect(notes).toEqual([
    `${file}: warning: the key ${named} exposes secrets of clients in logs, lists and the store.`,
    expect.stringContaining(`Use ${instead}, which keeps only a hash`),
  ])
})

it.each(['api-key:authorization', 'header:x-user'])('does not warn of %s', async (key) => {
  const { notes } = await run(fileWith(`tiers: { a: 1/1s }\nkey: ${key}\n`))
  expect(notes).toEqual([])
})
