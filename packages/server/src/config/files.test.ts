import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { demoConfig } from './demo-config.ts'
import { configJsonSchema } from './json-schema.ts'
import { readConfig } from './read-config.ts'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')

it('keeps sluice.yaml the same as the demonstration, which is valid', () => {
  expect(read('../../sluice.yaml')).toBe(demoConfig)
  const { tiers, routes } = readConfig(demoConfig, 'demo', {})
  expect(Object.keys(tiers)).toEqual(['free', 'pro', 'internal'])
  expect(routes.map(({ path, cost, isOpen }) => [path, cost, isOpen])).toEqual([
    ['/search/**', 5, false],
    ['/health', 1, true],
    ['/**', 1, false],
  ])
})

it('keeps sluice.schema.json the same as the schema (sluice validate --schema)', () => {
  expect(JSON.parse(read('../../sluice.schema.json'))).toEqual(
    JSON.parse(JSON.stringify(configJsonSchema())),
  )
})

it('describes every field in docs/reference/config.md', () => {
  const docs = read('../../../../docs/reference/config.md')
  const named = new Set(docs.match(/(?<=[`.])[$\w]+(?=[`.])/g))
  const missing: string[] = []
  const look = (shape: unknown): void => {
    if (typeof shape !== 'object' || shape === null) return
    for (const [name, value] of Object.entries(shape)) {
      if (name === 'properties') {
        missing.push(...Object.keys(value).filter((field) => !named.has(field)))
      }
      look(value)
    }
  }
  look(configJsonSchema())
  expect(missing).toEqual([])
})
