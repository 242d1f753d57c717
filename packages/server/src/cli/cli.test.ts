import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const cli = fileURLToPath(new URL('cli.ts', import.meta.url))
const bin = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url))
const example = '3 10 4\nrequest a 0\nrequest a 0\nrequest a 0\nrequest a 0\n'
const answers = 'allow\nallow\nallow\ndeny\n'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-cli-'))
})
afterAll(() => rm(folder, { recursive: true }))

const words = ['--import', 'tsx', '--conditions=sluice-source', cli]

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [...words, ...args])
}

async function ended(child: ChildProcess) {
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  const [code] = await once(child, 'close')
  return { code, stdout, stderr }
}

/** Runs the command on the whole input. A command may end before it has read all of it. */
function sluice(args: readonly string[], input = '') {
  const child = start(args)
  child.stdin?.on('error', () => {}).end(input)
  return ended(child)
}

describe('sluice', () => {
  it('explains itself with --help and -h', async () => {
    const long = await sluice(['--help'])
    expect(long).toMatchObject({ code: 0, stderr: '' })
    expect(long.stdout).toMatch(/^Usage: sluice COMMAND/)
    expect(long.stdout).toMatch(/^ {2}replay +\S/m)
    expect(await sluice(['-h'])).toEqual(long)
  })

  it('loses no output when the reader is slow', async () => {
    const file = join(folder, 'wrong.yaml')
    const names = Array.from({ length: 5_000 }, (_, i) => `unknown-${i}: 1`)
    await writeFile(file, `tiers: { free: 5/1h }\n${names.join('\n')}\n`)
    const pipe = '"$0" "$@" 2>&1 | { sleep 2; cat; }'
    const { stdout } = await ended(
      spawn('sh', ['-c', pipe, process.execPath, ...words, 'validate', file]),
    )
    expect(stdout.slice(-200)).toMatch(/\nsluice: .* has 5000 problems\.\n$/)
  })

  it('prints the version of its package with --version', async () => {
    const { version } = JSON.parse(
      readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
    )
    expect(await sluice(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  it.each([
    [['constructor'], 'sluice: unknown command "constructor". Run sluice --help for the list.\n'],
    [
      ['serv'],
      'sluice: unknown command "serv". Did you mean serve? Run sluice --help for the list.\n',
    ],
    [
      ['simulate', '--rules', '1/1s'],
      "sluice: Unknown option '--rules'. Did you mean --rule? Run sluice simulate --help for the options.\n",
    ],
    [[], 'sluice: a command is missing. Run sluice --help for the list.\n'],
    [['--no'], "sluice: Unknown option '--no'. Run sluice --help for the options.\n"],
  ])('ends with code 2 and one line for %j', async (args, stderr) => {
    expect(await sluice(args)).toEqual({ code: 2, stdout: '', stderr })
  })
})

describe('sluice replay', () => {
  it('answers standard input and a file', async () => {
    const file = join(folder, 'example.txt')
    await writeFile(file, example)
    const expected = { code: 0, stdout: answers, stderr: '' }
    expect(await sluice(['replay'], example)).toEqual(expected)
    expect(await sluice(['replay', file])).toEqual(expected)
  })

  it('ends with code 2 for malformed input, after the answers before it', async () => {
    const { code, stdout, stderr } = await sluice(['replay'], '3 10 2\nrequest a 0\nrequest a\n')
    expect({ code, stdout }).toEqual({ code: 2, stdout: 'allow\n' })
    expect(stderr).toMatch(/^sluice: line 3: a request takes two arguments.*\n$/)
  })

  it('ends with code 2 for a missing file', async () => {
    const { code, stderr } = await sluice(['replay', join(folder, 'missing')])
    expect(code).toBe(2)
    expect(stderr).toMatch(/^sluice: cannot read .*ENOENT.*\n$/)
  })

  it('answers an interactive peer request by request, and ends at the count', async () => {
    const child = start(['replay'])
    child.stdin?.write('1 10 2\nrequest a 0\n')
    const [first] = await once(child.stdout!, 'data')
    expect(String(first)).toBe('allow\n')
    child.stdin?.write('request a 0\n')
    // Standard input stays open: the count alone ends the command.
    expect(await ended(child)).toEqual({ code: 0, stdout: 'deny\n', stderr: '' })
  })

  it('ends without an error when the reader closes the pipe', async () => {
    const child = start(['replay'])
    child.stdin?.on('error', () => {}).write('1 10 1000000\nrequest a 0\n')
    await once(child.stdout!, 'data')
    child.stdout?.destroy()
    child.stdin?.write('request a 0\n'.repeat(100_000))
    expect(await ended(child)).toMatchObject({ code: 0, stderr: '' })
  })
})

it('says to build first when there is no build', async () => {
  const unbuilt = join(folder, 'bin')
  await mkdir(unbuilt)
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  await copyFile(bin, join(unbuilt, 'sluice.js'))
  const child = spawn(process.execPath, [join(unbuilt, 'sluice.js'), '--help'])
  const stderr = 'sluice: the program has not been built yet. Run: npm run build\n'
  expect(await ended(child)).toEqual({ code: 1, stdout: '', stderr })
})
