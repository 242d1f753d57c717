import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkArrows, readSources } from '../scripts/arrows.mjs'

const library = (files: Record<string, string>) => check('packages/sluice/src', files)
const server = (files: Record<string, string>) => check('packages/server/src', files)

function check(root: string, files: Record<string, string>): string[] {
  const entries = Object.entries(files).map(([path, text]) => [`${root}/${path}`, text])
  return checkArrows(Object.fromEntries(entries)).map(
    ({ file, line, says }) => `${file.slice(root.length + 1)}:${line}: ${says}`,
  )
}

describe('the import arrows', () => {
  it('hold in the tree', () => {
    const files = readSources(resolve(import.meta.dirname, '..'))
    // Those that built-ins of Node are looked for from; who is not there reaches nothing.
    for (const name of ['index', 'middleware/fetch', 'middleware/hono']) {
      expect(Object.keys(files)).toContain(`packages/sluice/src/${name}.ts`)
    }
    expect(checkArrows(files)).toEqual([])
  })

  it.each([
    ['a noun imports a noun', 'key.ts', "import { shown } from './errors.ts'"],
    ['an algorithm imports a noun', 'algorithms/gcra.ts', "import { gcd } from '../exact.ts'"],
    ['a room imports itself', 'stores/memory.ts', "import { a } from './redis/store.ts'"],
    ['a noun takes a contract', 'rule.ts', "import type { A } from './algorithms/algorithm.ts'"],
    ['limiter.ts takes its default store', 'limiter.ts', "import { m } from './stores/memory.ts'"],
    ['a middleware takes types', 'middleware/koa.ts', "import type { Context } from 'koa'"],
    ['a suite plays the model', 'testing/suite.ts', "import { m } from './model.ts'"],
    ['a test imports anything', 'key.test.ts', "import { manualClock } from './testing/index.ts'"],
    ['a comment is no import', 'key.ts', "// import { a } from './limiter.ts'"],
  ])('are kept when %s', (_, file, text) => expect(library({ [file]: text })).toEqual([]))

  it.each([
    ['a noun imports a room', 'key.ts', "import { a } from './limiter.ts'", 'limiter.ts'],
    [
      'a noun takes a value of a contract',
      'rule.ts',
      "import { defineAlgorithm } from './algorithms/algorithm.ts'",
      'algorithms/algorithm.ts',
    ],
    [
      'inline types leave an import at run time',
      'rule.ts',
      "import { type Algorithm } from './algorithms/algorithm.ts'",
      'algorithms/algorithm.ts',
    ],
    ['a type crosses', 'key.ts', "import type { Limiter } from './limiter.ts'", 'limiter.ts'],
    ['a type is spelled out', 'key.ts', "let a: import('./limiter.ts').Limiter", 'limiter.ts'],
    ['a re-export crosses', 'key.ts', "export * from './limiter.ts'", 'limiter.ts'],
    ['an import is dynamic', 'key.ts', "await import('./limiter.ts')", 'limiter.ts'],
    [
      'an algorithm imports a store',
      'algorithms/gcra.ts',
      "import { a } from '../stores/memory.ts'",
      'stores/memory.ts',
    ],
    [
      'a store imports an algorithm',
      'stores/memory.ts',
      "import { gcra } from '../algorithms/gcra.ts'",
      'algorithms/gcra.ts',
    ],
    [
      'a store imports limiter.ts',
      'stores/a.ts',
      "import { a } from '../limiter.ts'",
      'limiter.ts',
    ],
    [
      'limiter.ts looks inside a store',
      'limiter.ts',
      "import { a } from './stores/memory-table.ts'",
      'stores/memory-table.ts',
    ],
    ['policy.ts imports limiter.ts', 'policy.ts', "import { a } from './limiter.ts'", 'limiter.ts'],
    [
      'parse-rule.ts imports a store',
      'parse-rule.ts',
      "import { memoryStore } from './stores/memory.ts'",
      'stores/memory.ts',
    ],
    [
      'http imports a store',
      'http/guard.ts',
      "import { a } from '../stores/row.ts'",
      'stores/row.ts',
    ],
    [
      'a middleware goes past http',
      'middleware/koa.ts',
      "import { createLimiter } from '../limiter.ts'",
      'limiter.ts',
    ],
    [
      'the reference model imports an algorithm',
      'testing/model.ts',
      "import { gcra } from '../algorithms/gcra.ts'",
      'algorithms/gcra.ts',
    ],
    [
      'a room imports testing',
      'limiter.ts',
      "import { manualClock } from './testing/manual-clock.ts'",
      'testing/manual-clock.ts',
    ],
    [
      'index.ts exports testing',
      'index.ts',
      "export { manualClock } from './testing/index.ts'",
      'testing/index.ts',
    ],
    ['a source imports a test', 'key.ts', "import { a } from './errors.test.ts'", 'errors.test.ts'],
    ['the library imports a package', 'key.ts', "import x from 'nanoid'", 'package nanoid'],
    ['the library imports itself by name', 'key.ts', "import { gcra } from 'sluice'", 'sluice'],
    ['a middleware runs a framework', 'middleware/koa.ts', "import Koa from 'koa'", 'package koa'],
    [
      'the library leaves its package',
      'key.ts',
      "import { a } from '../../server/src/cli.ts'",
      'packages/server/src/cli.ts, outside its package',
    ],
  ])('are broken when %s', (_, file, text, named) => {
    const violations = library({ [file]: `\n${text}` })
    expect(violations).toHaveLength(1)
    expect(violations[0]).toContain(`${file}:2: imports `)
    expect(violations[0]).toContain(named)
  })

  it('say what is allowed', () =>
    expect(library({ 'stores/a.ts': "import { a } from '../limiter.ts'" })).toEqual([
      'stores/a.ts:1: imports limiter.ts; stores may import stores, nouns, stores/redis/twins, soon, time-limit, ' +
        'and types of the two contracts',
    ]))

  it('are broken by a file in no room', () =>
    expect(library({ 'utils.ts': '' })).toEqual([
      'utils.ts:1: is in no room: add it to the table of rooms in scripts/arrows.mjs',
    ]))

  it('are broken by code in index.ts', () =>
    expect(library({ 'index.ts': "export { a } from './key.ts'\nexport const b = 1" })).toEqual([
      'index.ts:2: has code of its own; index.ts only re-exports',
    ]))
})

describe('built-ins of Node', () => {
  const worker = "import { Worker } from 'node:worker_threads'"

  it('are free where index.ts does not reach', () =>
    expect(
      library({
        'index.ts': "export type { S } from './stores/shared-memory.ts'",
        'stores/shared-memory.ts': worker,
      }),
    ).toEqual([]))

  it('are refused wherever index.ts reaches at run time', () => {
    const files = {
      'index.ts': "export { s } from './stores/shared-memory.ts'",
      'stores/shared-memory.ts': "import { w } from './threads.ts'",
      'stores/threads.ts': worker,
    }
    const says = 'files reached from index, middleware/fetch, middleware/hono run without Node'
    expect(library(files)).toEqual([`stores/threads.ts:1: imports node:worker_threads; ${says}`])
  })

  it('are refused without their prefix too', () =>
    expect(library({ 'index.ts': "export { readFile } from 'fs'" })).toHaveLength(1))
})

describe('the arrows of the server', () => {
  it('go from left to right', () =>
    expect(
      server({
        'cli.ts': "import { a } from './app.ts'\nimport { replay } from 'sluice'\nimport 'node:fs'",
        'app.ts': "import { a } from './gateway/index.ts'\nimport fastify from 'fastify'",
        'gateway/index.ts': "import { a } from '../metrics.ts'",
      }),
    ).toEqual([]))

  it.each([
    ['back', 'metrics.ts', "import { a } from './app.ts'", 'imports app.ts'],
    ['sideways', 'gateway/a.ts', "import { a } from '../api/b.ts'", 'imports api/b.ts'],
    [
      'into the files of the library',
      'cli.ts',
      "import { replay } from '../../sluice/src/replay.ts'",
      "other packages are imported by name, such as 'sluice'",
    ],
    ['to testing', 'cli.ts', "import { manualClock } from 'sluice/testing'", 'is for tests'],
  ])('never go %s', (_, file, text, says) =>
    expect(server({ [file]: text })).toEqual([expect.stringContaining(says)]),
  )
})
