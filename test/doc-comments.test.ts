import { describe, expect, it } from 'vitest'
import { undocumented } from '../scripts/doc-comments.mjs'

const check = (files: Record<string, string>) =>
  undocumented(['index.d.ts'], (path) => {
    if (files[path] === undefined) throw new Error(`${path} is not there`)
    return files[path]
  })

const verbs = `
/** A limiter. */
export interface Limiter {
  /** Decides. */
  check(key: string): boolean
  unblock(key: string): void
  readonly name: string
  [Symbol.dispose](): void
}
interface Inner { hidden: string }
export interface NotReached { name: string }
/** Options. */
export type Options = {
  /** A name. */
  name?: string
  share?: boolean
}
`

describe('doc comments', () => {
  it('are there on every declaration and member that an entry exports', () =>
    expect(
      check({
        'index.d.ts': "export { type Limiter, type Options as Given } from './verbs.js'",
        'verbs.d.ts': verbs,
      }),
    ).toEqual([
      'verbs.d.ts: Limiter.name',
      'verbs.d.ts: Limiter.unblock',
      'verbs.d.ts: Options.share',
    ]))

  it('are looked for through imports, star exports and packages', () =>
    expect(
      check({
        'index.d.ts': "import { a } from './a.js'\nexport { a }\nexport * from './b.js'",
        'a.d.ts': 'export declare const a: number',
        'b.d.ts': "export type { Express } from 'express'\nexport declare function b(): void",
      }),
    ).toEqual(['a.d.ts: a', 'b.d.ts: b']))

  it('count where one of several overloads has it, and not where a comment is an ordinary one', () =>
    expect(
      check({
        'index.d.ts': `
          /** Makes one. */
          export declare function make(): void
          export declare function make(name: string): void
          // Takes one.
          export declare function take(): void
          /* Gives one. */
          export declare class Given { constructor(); private own; name: string }
        `,
      }),
    ).toEqual(['index.d.ts: Given', 'index.d.ts: Given.name', 'index.d.ts: take']))
})
