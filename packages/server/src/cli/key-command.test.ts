import { Readable } from 'node:stream'
import { apiKey } from 'sluice'
import { expect, it } from 'vitest'
import { keyCommand } from './key-command.ts'

async function keyOf(args: readonly string[], input = ''): Promise<string> {
  let out = ''
  await keyCommand.run(args, {
    input: () => Readable.from([Buffer.from(input)]),
    inputIsTerminal: false,
    write: async (text) => {
      out += text
    },
    note: () => {},
  })
  return out
}

const hash = 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0'

it.each([
  [['--address', '203.0.113.7'], '203.0.113.7'],
  [['--address', '::ffff:203.0.113.7'], '203.0.113.7'],
  [['--address', '2001:db8::7'], '2001:db8:0:0:0:0:0:0/64'],
  [['--api-key', 'abc'], `key:${hash}`],
  [['--header', 'X-User: alice'], 'x-user:alice'],
  [['--header', 'x-team:a:b'], 'x-team:a:b'],
  [['--subject', 'alice'], 'sub:alice'],
  [['--route', 'search'], 'search'],
  [['--route', 'search', '--api-key', 'abc'], `6:search47:key:${hash}`],
  [['--header', 'a:1', '--header', 'b:2'], '3:a:13:b:2'],
])('%j prints the key that the gateway uses', async (args, key) => {
  expect(await keyOf(args)).toBe(`${key}\n`)
})

it('reads a secret from standard input, without the end of the line', async () => {
  expect(await keyOf(['--api-key', '-'], 'abc\n')).toBe(`key:${hash}\n`)
  expect(await apiKey(() => 'abc')(undefined)).toBe(`key:${hash}`)
})

it('hashes a very long value', async () => {
  expect(await keyOf(['--subject', 'a'.repeat(257)])).toMatch(/^key:[\w-]{43}\n$/)
})

it.each([
  [[], 'name the client by options'],
  [['alice'], 'name the client by options'],
  [['--api-key', '-'], '--api-key must not be empty'],
  [['--api-key', '-', '--subject', '-'], 'only one value can be read'],
  [['--api-key', 'Bearer abc 1'], 'parse this value in different ways'],
  [['--address', '203.0.113.7:80'], 'must be an IP address without a port, got "203.0.113.7:80"'],
  [['--header', 'x-user'], '--header must be NAME:VALUE'],
  [['--route', 'a', '--route', 'b'], '--route can be given once'],
])('refuses %j', async (args, says) => {
  await expect(keyOf(args)).rejects.toThrow(says)
})
