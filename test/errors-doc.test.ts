import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { errorCodes } from 'sluice'
import { describe, expect, it } from 'vitest'
import { warningCodes } from '../packages/sluice/src/core/warn.ts'
import { readSources } from '../scripts/arrows.mjs'
import { blocksOf } from './readme-blocks.ts'

const root = resolve(import.meta.dirname, '..')
const codes: string[] = Object.keys(errorCodes)
const document = readFileSync(resolve(root, 'docs/reference/errors.md'), 'utf8')
const sections = new Map(
  document
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section]),
)
// The store suites only expect codes, so they do not count as throwing them.
const thrown = new Set(
  Object.entries(readSources(root))
    .filter(([file]) => !/\.test\.ts$|\/testing\/|sluice\/src\/errors\.ts$/.test(file))
    .flatMap(([, text]) => text.match(/(?<=')SLUICE_[A-Z_]+(?=')/g) ?? []),
)

describe('docs/reference/errors.md', () => {
  it('has a heading for every code, in the order of the table, and no other', () =>
    expect([...sections.keys()]).toEqual(codes))

  it.each(['**When**: ', '**What to do**: '])('says %s under every heading', (label) =>
    expect(codesWhere((section) => !section.includes(`\n${label}`))).toEqual([]),
  )

  // readme.test.ts runs the examples and checks that they throw.
  it('has an example of two to six lines that throws under every heading', () =>
    expect(
      codesWhere((section, code) => {
        const [example, ...others] = blocksOf('docs/reference/errors.md', section)
        const lines = example?.code.split('\n').filter((line) => line !== '') ?? []
        const throws = lines.at(-1)?.endsWith(` //=> throws ${code}`)
        return !throws || !example.runs || lines.length < 2 || lines.length > 6 || others.length > 0
      }),
    ).toEqual([]))
})

describe('the table of codes', () => {
  it('has no code that nothing throws', () =>
    expect(codes.filter((code) => !thrown.has(code))).toEqual([]))

  it('has every code that something throws', () =>
    expect([...thrown].filter((code) => !codes.includes(code) && !(code in warningCodes))).toEqual(
      [],
    ))

  it('leaves out warnings, which the document lists before the errors', () => {
    const start = document.slice(0, document.indexOf('\n## '))
    const missing = Object.keys(warningCodes).filter((code) => !start.includes(`| \`${code}\` |`))
    expect(missing).toEqual([])
  })
})

function codesWhere(isWrong: (section: string, code: string) => boolean): string[] {
  return [...sections].filter(([code, section]) => isWrong(section, code)).map(([code]) => code)
}
