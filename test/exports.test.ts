import { describe, expect, it } from 'vitest'
import { checkExports } from '../scripts/exports.mjs'

const index = {
  'sluice-source': './src/index.ts',
  import: { types: './dist/index.d.ts', default: './dist/index.js' },
  require: { types: './dist/cjs/index.d.ts', default: './dist/cjs/index.js' },
}
const built = ['dist/index.d.ts', 'dist/index.js', 'dist/cjs/index.d.ts', 'dist/cjs/index.js']
const files = ['package.json', 'src/index.ts', ...built]
const check = (exports: Record<string, string | typeof index>, extra: string[] = []) =>
  checkExports({ name: 'a', exports }, [...files, ...extra])

describe('exports and files', () => {
  it('agree when every name has its files and every entry its name', () =>
    expect(check({ '.': index, './package.json': './package.json' })).toEqual([]))

  it.each(['src/index.ts', ...built])('differ without %s', (file) =>
    expect(
      checkExports(
        { name: 'a', exports: { '.': index } },
        files.filter((other) => other !== file),
      ),
    ).toEqual([expect.stringMatching(`names ./${file}, which is not there`)]),
  )

  it.each(['testing/index.ts', 'middleware/koa.ts'])('differ when src/%s has no name', (path) =>
    expect(check({ '.': index }, [`src/${path}`])).toEqual([
      `a: src/${path} is meant for users, but exports does not name it`,
    ]),
  )

  it('ignore internal files and tests', () =>
    expect(check({ '.': index }, ['src/key.ts', 'src/middleware/koa.test.ts'])).toEqual([]))

  it('differ when the conditions of an entry name different modules', () =>
    expect(
      check({ '.': { ...index, import: { ...index.import, types: './dist/key.d.ts' } } }, [
        'dist/key.d.ts',
      ]),
    ).toEqual([`a: exports["."] must be ${JSON.stringify(index)}`]))

  it('differ when the default condition comes first', () =>
    expect(
      check({ '.': Object.fromEntries(Object.entries(index).reverse()) as never }),
    ).toHaveLength(1))

  it('differ when older TypeScript finds no types for an entry', () => {
    const exports = { '.': index, './a': index }
    const typesVersions = { '*': { a: ['./dist/cjs/index.d.ts'] } }
    expect(checkExports({ name: 'a', exports, typesVersions }, files)).toEqual([])
    expect(check(exports)).toEqual(['a: typesVersions must have ./dist/cjs/index.d.ts for ./a'])
  })

  it('differ when a command is missing', () =>
    expect(checkExports({ name: 'a', bin: { a: 'bin/a.js' } }, files)).toEqual([
      'a: bin.a names ./bin/a.js, which is not there',
    ]))
})
