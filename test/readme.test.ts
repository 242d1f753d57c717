import { parseSync } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { documents, readBlocks } from './readme-blocks.ts'
import { type RedisServer, startRedis } from './redis/server.ts'

const blocks = documents().flatMap(readBlocks)

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  process.env.REDIS_URL = `redis://127.0.0.1:${redis.port}`
}, 120_000)
afterAll(() => redis.stop())

describe('the documents', () => {
  it('include a README.md that shows code and its results', () =>
    expect(blocks.map(({ id }) => id)).toContain('readme:README.md/0.ts'))

  it('have an app.mjs in README.md that needs no TypeScript', () => {
    const app = blocks.find(({ file, code }) => file === 'README.md' && code.includes('app.listen'))
    expect(parseSync('app.mjs', app?.code ?? 'missing:').errors).toEqual([])
  })

  for (const { id, file, line, code, runs } of blocks) {
    if (runs) it(`${file}:${line} shows what happens`, () => import(/* @vite-ignore */ id))
    else it(`${file}:${line} can be read`, () => expect(parseSync('a.ts', code).errors).toEqual([]))
  }
})
