// @ts-check
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

// Tests the library on every runtime, and writes the results into the documents.

const root = resolve(import.meta.dirname, '..')
const report = join(root, '.cache/runtimes/report.json')
const page = join(root, 'docs/guide/runtimes.md')

mkdirSync(join(report, '..'), { recursive: true })
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
const words = ['run', '--project', 'system', 'test/runtimes.test.ts', '--reporter=default']
const { status } = spawnSync(
  process.execPath,
  [vitest, ...words, '--reporter=json', `--outputFile.json=${report}`],
  { cwd: root, stdio: 'inherit', env: { ...process.env, SLUICE_RUNTIMES: 'all' } },
)
process.exitCode = status ?? 1
if (status === 0) {
  const text = readFileSync(page, 'utf8')
  const table = tableOf(JSON.parse(readFileSync(report, 'utf8')).testResults[0].assertionResults)
  writeFileSync(page, text.replace(/(?<=<!-- runs -->\n)[\s\S]*(?=\n<!-- end of runs -->)/, table))
  console.log(`\n${table}\n\nWritten into ${page}`)
}

/**
 * Returns a table with a row per check and a column per runtime.
 * @param {readonly { ancestorTitles: string[], title: string, status: string }[]} results
 */
function tableOf(results) {
  /** @type {Map<string, Map<string, string>>} */
  const rows = new Map()
  const runtimes = new Set()
  for (const { ancestorTitles, title, status } of results) {
    const runtime = ancestorTitles[0].replace(/^on '|'$/g, '')
    const what = title.replace(' works', '')
    runtimes.add(runtime)
    if (!rows.has(what)) rows.set(what, new Map())
    rows.get(what)?.set(runtime, status === 'passed' ? 'yes' : 'no')
  }
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`
  return [
    line(['', ...runtimes]),
    line(['---', ...Array.from(runtimes, () => '---')]),
    ...Array.from(rows, ([what, row]) =>
      line([what, ...Array.from(runtimes, (runtime) => row.get(runtime) ?? '–')]),
    ),
  ].join('\n')
}
