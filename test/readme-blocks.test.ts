import { describe, expect, it } from 'vitest'
import { blocksOf, readBlocks, rewritten } from './readme-blocks.ts'
import { more, rejectsCode, shows, throwsCode } from './readme-compare.ts'

const fence = '```'

/** Returns the module of a block that starts on line 2 of a.md, without its import of comparisons. */
function moduleOf(...code: string[]): string {
  const [block] = blocksOf('a.md', [`${fence}ts`, ...code, fence].join('\n'))
  return rewritten(block).replace(/^\nimport .*?; /, '')
}

describe('the blocks of a document', () => {
  const [right, wrong] = readBlocks('test/fixtures/blocks.md')

  it('run as modules that import the library by its package name', () =>
    expect(import(/* @vite-ignore */ right.id)).resolves.toBeDefined())

  it('fail on a wrong value, and report its place, the shown and the actual value', () =>
    expect(import(/* @vite-ignore */ wrong.id)).rejects.toThrow(
      'test/fixtures/blocks.md:23: shows [1, 3], but the value is [ 1, 2 ]',
    ))

  it('are those marked ts, and do not run if marked no-run', () => {
    const text = `${fence}ts\n1 //=> 1\n${fence}\n${fence}sh\nls\n${fence}\n${fence}ts no-run\n2\n${fence}`
    expect(blocksOf('a.md', text)).toEqual([
      { id: 'readme:a.md/0.ts', file: 'a.md', line: 2, code: '1 //=> 1', runs: true },
      { id: 'readme:a.md/1.ts', file: 'a.md', line: 8, code: '2', runs: false },
    ])
  })

  it('are ignored inside longer fences', () =>
    expect(blocksOf('a.md', `${fence}\`md\n${fence}ts\n1\n${fence}\n${fence}\``)).toEqual([]))

  it('must be closed', () =>
    expect(() => blocksOf('a.md', `${fence}ts\n1 //=> 1`)).toThrow('is not closed'))
})

describe('a shown value', () => {
  it('may follow an expression', () =>
    expect(moduleOf('1 + 1 //=> 2')).toBe('readme.shows("a.md:2", "2", (1 + 1), (2)); //=> 2'))

  it('may follow the declaration of a variable', () =>
    expect(moduleOf('const a = 1 //=> 1')).toBe(
      'const a = 1; readme.shows("a.md:2", "1", a, (1)); //=> 1',
    ))

  it('may be on the next lines', () =>
    expect(moduleOf('f({', '  a,', '})', '//=> { b: 1,', '//     c: 2 }', '// done')).toContain(
      'readme.shows("a.md:5", "{ b: 1, c: 2 }", (f({\n  a,\n})), ({ b: 1, c: 2 }));',
    ))

  it('may leave members out, but not inside a string', () =>
    expect(moduleOf("f() //=> { a: '…', … }")).toContain("({ a: '…', ...readme.more })"))

  it('may be an error, also that of a promise', () => {
    expect(moduleOf('f() //=> throws A_B')).toContain(
      `readme.throwsCode("a.md:2", 'A_B', () => (f()));`,
    )
    expect(moduleOf('await f() //=> throws A_B')).toContain(
      `await readme.rejectsCode("a.md:2", 'A_B', async () => (await f()));`,
    )
  })

  it.each([
    ['is missing', ['f()'], 'a.md:2: the block shows no value'],
    ['is empty', ['f() //=>'], 'a.md:2: cannot read the shown value'],
    ['is prose', ['f() //=> about 2'], 'a.md:2: cannot read the shown value about 2'],
    ['has a comment', ['f() //=> 2 // two'], 'a.md:2: cannot read the shown value 2 // two'],
    [
      'stands where it may never run',
      ['if (a) {', '  f() //=> 2', '}'],
      'a.md:3: //=> must follow',
    ],
    ['is a line away', ['f()', '', '//=> 2'], 'a.md:4: //=> must follow'],
    ['is the second', ['f() //=> 2', '//=> 3'], 'a.md:3: //=> must follow'],
    ['belongs to an import', ["import 'a' //=> 2"], 'a.md:2: //=> must follow an expression'],
    ['belongs to a pattern', ['const { a } = b //=> 2'], 'a.md:2: //=> must follow an expression'],
    ['is an error of a variable', ['const a = f() //=> throws B'], 'a.md:2: cannot read the shown'],
    ['is in code that cannot be read', ['f( //=> 2'], 'a.md:2: '],
  ])('that %s is a failure', (_, code, says) => expect(() => moduleOf(...code)).toThrow(says))
})

describe('the comparison', () => {
  const decision = { allowed: true, rules: [{ rule: 'a', capacity: 1 }, { rule: 'b' }] }

  it.each([
    [1, 1],
    [Number.NaN, Number.NaN],
    [
      [1, { a: 2 }],
      [1, { a: 2 }],
    ],
    [new Map([[1, 2]]), new Map([[1, 2]])],
    [decision, { allowed: true, ...more }],
    [decision, { rules: [{ rule: 'a', ...more }, ...more], ...more }],
    [[], [...more]],
  ])('%# passes', (actual, shown) => expect(() => shows('a', '', actual, shown)).not.toThrow())

  it.each([
    [1, 2],
    [0, -0],
    ['1', 1],
    [undefined, {}],
    [null, { ...more }],
    [[1, 2], [1]],
    [[1], [1, 2, ...more]],
    [
      [1, 2],
      [2, ...more],
    ],
    [decision, { allowed: true }],
    [decision, { allowed: false, ...more }],
    [decision, { allowed: true, missing: undefined, ...more }],
    [decision, { rules: [{ rule: 'a' }, ...more], ...more }],
    [new Map(), {}],
    [Promise.resolve(1), 1],
  ])('%# fails', (actual, shown) => expect(() => shows('a', '', actual, shown)).toThrow('a: shows'))

  it('fails when nothing or something else is thrown', async () => {
    const other = () => {
      throw Object.assign(new Error('no'), { code: 'OTHER' })
    }
    expect(() => throwsCode('a', 'OTHER', other)).not.toThrow()
    expect(() => throwsCode('a', 'CODE', other)).toThrow('a: shows throws CODE, but it threw Error')
    expect(() => throwsCode('a', 'CODE', () => 1)).toThrow('throws CODE, but the value is 1')
    await expect(rejectsCode('a', 'OTHER', async () => other())).resolves.toBeUndefined()
    await expect(rejectsCode('a', 'CODE', async () => other())).rejects.toThrow('but it threw')
    await expect(rejectsCode('a', 'CODE', async () => 1)).rejects.toThrow('but the value is 1')
  })
})
