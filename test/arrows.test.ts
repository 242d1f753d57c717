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
    // The search for Node built-ins starts at these files, so they must exist.
    for (const name of ['index', 'middleware/fetch', 'middleware/hono']) {
      expect(Object.keys(files)).toContain(`packages/sluice/src/${name}.ts`)
    }
    expect(checkArrows(files)).toEqual([])
  })

  it.each([
    ['core imports itself', 'core/key.ts', "import { shown } from './errors.ts'"],
    ['an algorithm imports core', 'algorithms/gcra.ts', "import { gcd } from '../core/exact.ts'"],
    ['an engine imports itself', 'stores/redis/redis.ts', "import { a } from './twins/exact.ts'"],
    ['an engine imports rows', 'stores/memory/memory.ts', "import { a } from '../../rows/row.ts'"],
    ['core takes a contract', 'core/rule.ts', "import type { A } from '../stores/store.ts'"],
    [
      'the limiter takes its default store',
      'limiter/limiter.ts',
      "import { m } from '../stores/memory/memory.ts'",
    ],
    ['a middleware takes types', 'middleware/koa.ts', "import type { Context } from 'koa'"],
    ['a suite plays the model', 'testing/suite.ts', "import { m } from './model.ts'"],
    ['a test imports anything', 'core/key.test.ts', "import { m } from '../testing/index.ts'"],
    ['a comment is no import', 'core/key.ts', "// import { a } from '../limiter/limiter.ts'"],
  ])('are kept when %s', (_, file, text) => expect(library({ [file]: text })).toEqual([]))

  const limiter = '../limiter/limiter.ts'
  it.each([
    ['core imports a room', 'core/key.ts', `import { a } from '${limiter}'`, limiter],
    [
      'core takes a value of a contract',
      'core/rule.ts',
      "import { a } from '../stores/store.ts'",
      'stores/store.ts',
    ],
    [
      'inline types leave an import at run time',
      'core/rule.ts',
      "import { type Store } from '../stores/store.ts'",
      'stores/store.ts',
    ],
    ['a type crosses', 'core/key.ts', `import type { Limiter } from '${limiter}'`, limiter],
    ['a type is spelled out', 'core/key.ts', `let a: import('${limiter}').Limiter`, limiter],
    ['a re-export crosses', 'core/key.ts', `export * from '${limiter}'`, limiter],
    ['an import is dynamic', 'core/key.ts', `await import('${limiter}')`, limiter],
    [
      'an algorithm imports a store',
      'algorithms/gcra.ts',
      "import { a } from '../stores/memory/memory.ts'",
      'stores/memory/memory.ts',
    ],
    [
      'a store imports an algorithm',
      'stores/memory/memory.ts',
      "import { gcra } from '../../algorithms/gcra.ts'",
      'algorithms/gcra.ts',
    ],
    [
      'a store imports another engine',
      'stores/memory/memory.ts',
      "import { a } from '../redis/redis.ts'",
      'stores/redis/redis.ts',
    ],
    [
      'a store imports the limiter',
      'stores/memory/a.ts',
      "import { a } from '../../limiter/limiter.ts'",
      limiter,
    ],
    [
      'the limiter looks inside a store',
      'limiter/limiter.ts',
      "import { a } from '../stores/memory/memory-rows.ts'",
      'stores/memory/memory-rows.ts',
    ],
    [
      'parse-rule.ts imports a store',
      'algorithms/parse-rule.ts',
      "import { memoryStore } from '../stores/memory/memory.ts'",
      'stores/memory/memory.ts',
    ],
    ['http imports rows', 'http/guard.ts', "import { a } from '../rows/row.ts'", 'rows/row.ts'],
    [
      'a middleware goes past http',
      'middleware/koa.ts',
      `import { createLimiter } from '${limiter}'`,
      limiter,
    ],
    [
      'the reference model imports an algorithm',
      'testing/model.ts',
      "import { gcra } from '../algorithms/gcra.ts'",
      'algorithms/gcra.ts',
    ],
    [
      'a room imports testing',
      'limiter/limiter.ts',
      "import { manualClock } from '../testing/manual-clock.ts'",
      'testing/manual-clock.ts',
    ],
    [
      'index.ts exports testing',
      'index.ts',
      "export { manualClock } from './testing/index.ts'",
      'testing/index.ts',
    ],
    [
      'a source imports a test',
      'core/key.ts',
      "import { a } from './errors.test.ts'",
      'errors.test.ts',
    ],
    ['the library imports a package', 'core/key.ts', "import x from 'nanoid'", 'package nanoid'],
    [
      'the library imports itself by name',
      'core/key.ts',
      "import { gcra } from 'sluice'",
      'sluice',
    ],
    ['a middleware runs a framework', 'middleware/koa.ts', "import Koa from 'koa'", 'package koa'],
    [
      'the library leaves its package',
      'core/key.ts',
      "import { a } from '../../../server/src/cli/cli.ts'",
      'packages/server/src/cli/cli.ts, outside its package',
    ],
  ])('are broken when %s', (_, file, text, named) => {
    const violations = library({ [file]: `\n${text}` })
    expect(violations).toHaveLength(1)
    expect(violations[0]).toContain(`${file}:2: imports `)
    expect(violations[0]).toContain(named.replace('../', ''))
  })

  it('report what is allowed', () =>
    expect(library({ 'algorithms/a.ts': `import { a } from '${limiter}'` })).toEqual([
      'algorithms/a.ts:1: imports limiter/limiter.ts; algorithms may import algorithms, core, ' +
        'and types of the contracts',
    ]))

  it('are broken by a file in no room', () =>
    expect(library({ 'utils.ts': '' })).toEqual([
      'utils.ts:1: is in no room: add it to the table of rooms in scripts/arrows.mjs',
    ]))

  it('are broken by code in index.ts', () =>
    expect(
      library({ 'index.ts': "export { a } from './core/key.ts'\nexport const b = 1" }),
    ).toEqual(['index.ts:2: has code of its own; index.ts only re-exports']))
})

describe('Node built-ins', () => {
  const worker = "import { Worker } from 'node:worker_threads'"

  it('are allowed in files that index.ts does not reach', () =>
    expect(
      library({
        'index.ts': "export type { S } from './stores/shared-memory/shared-memory.ts'",
        'stores/shared-memory/shared-memory.ts': worker,
      }),
    ).toEqual([]))

  it('are refused in files that index.ts reaches at run time', () => {
    const files = {
      'index.ts': "export { s } from './stores/shared-memory/shared-memory.ts'",
      'stores/shared-memory/shared-memory.ts': "import { w } from './threads.ts'",
      'stores/shared-memory/threads.ts': worker,
    }
    const says = 'files reached from index, middleware/fetch, middleware/hono run without Node'
    expect(library(files)).toEqual([
      `stores/shared-memory/threads.ts:1: imports node:worker_threads; ${says}`,
    ])
  })

  it('are refused without the node: prefix, too', () =>
    expect(library({ 'index.ts': "export { readFile } from 'fs'" })).toHaveLength(1))
})

describe('the arrows of the server', () => {
  it('go from left to right', () =>
    expect(
      server({
        'cli/cli.ts':
          "import { a } from '../app/app.ts'\nimport { replay } from 'sluice'\nimport 'node:fs'",
        'app/app.ts': "import { a } from '../gateway/index.ts'\nimport fastify from 'fastify'",
        'gateway/index.ts': "import { a } from '../metrics/metrics.ts'",
      }),
    ).toEqual([]))

  it.each([
    ['back', 'metrics/a.ts', "import { a } from '../app/app.ts'", 'imports app/app.ts'],
    ['sideways', 'gateway/a.ts', "import { a } from '../api/b.ts'", 'imports api/b.ts'],
    [
      'into the files of the library',
      'cli.ts',
      "import { replay } from '../../sluice/src/replay.ts'",
      "other packages are imported by name, such as 'sluice'",
    ],
    ['to testing', 'cli/cli.ts', "import { manualClock } from 'sluice/testing'", 'is for tests'],
  ])('never go %s', (_, file, text, says) =>
    expect(server({ [file]: text })).toEqual([expect.stringContaining(says)]),
  )
})
