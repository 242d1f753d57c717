import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '..')
const cli = join(root, 'packages/server/src/cli/cli.ts')
const tsx = join(root, 'node_modules/tsx/dist/esm/index.mjs')
const documents = [
  'docs/operate/simulate.md',
  'docs/guide/choosing-a-limit.md',
  'docs/reference/cli.md',
  'docs/reference/config.md',
]

interface Step {
  readonly command: string
  readonly shown: string
}

/** Returns the commands of a document's `console` blocks, each with the output that it shows. */
function stepsOf(markdown: string): Step[] {
  return [...markdown.matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block]) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((text) => {
        // A here-document goes on to its end.
        const marker = /<<'(\w+)'\n/.exec(text)?.[1]
        const end = text.indexOf(marker ? `\n${marker}\n` : '\n')
        const length = end + (marker ? marker.length + 2 : 1)
        return { command: text.slice(0, length), shown: text.slice(length) }
      }),
  )
}

describe.each(documents)('%s', (file) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-docs-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const steps = stepsOf(readFileSync(join(root, file), 'utf8'))

  it('shows commands', () => expect(steps.length).toBeGreaterThan(0))

  // In order: a command may read files that an earlier one has written.
  it.each(steps)('prints the shown output: $command', ({ command, shown }) => {
    const sluice = `"${process.execPath}" --import "${tsx}" --conditions=sluice-source "${cli}"`
    const script = command.replaceAll('npx sluice', sluice)
    const { stdout, stderr, status } = spawnSync('sh', ['-c', script], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
    // Editors strip trailing spaces.
    expect(stdout.replace(/ +$/gm, '')).toBe(shown)
  })
})

describe('docs/reference/cli.md', () => {
  const page = readFileSync(join(root, 'docs/reference/cli.md'), 'utf8')
  const help = (...words: string[]) =>
    spawnSync(process.execPath, [
      ...['--import', tsx, '--conditions=sluice-source', cli],
      ...[...words, '--help'],
    ]).stdout.toString()
  const commands = [...help().matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name]) => name)

  it('has a section for every command', () => {
    expect(commands).toContain('serve')
    for (const name of commands) expect(page).toContain(`\n## ${name}\n`)
  })

  it.each([...commands, 'simulate --fleet'])('names every option of %s', (command) => {
    const words = command.split(' ')
    const section = page.split(/^##+ /m).find((text) => text.startsWith(`${command}\n`)) ?? ''
    const options = [...help(...words).matchAll(/^ {2,6}(?:-\w, )?(--[\w-]+)/gm)]
    const missing = options.map(([, name]) => name).filter((name) => !section.includes(name))
    expect(missing.filter((name) => name !== '--help')).toEqual([])
  })
})
