import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readBody } from './read-body.ts'

const block = z.strictObject({ duration: z.union([z.string(), z.number()]) })
const checks = z.strictObject({ checks: z.array(z.strictObject({ key: z.string() })).max(2) })

describe('readBody', () => {
  it.each([
    [block, undefined, 'it is missing'],
    [block, null, 'it must be of type object'],
    [block, [], 'it must be of type object'],
    [block, { for: '10m' }, 'duration is missing; for is unknown'],
    [block, { duration: true }, 'duration must be of type string or number'],
    [checks, { checks: [{ key: 'a' }, { key: 1 }] }, 'checks.1.key must be of type string'],
    [checks, { checks: [{}] }, 'checks.0.key is missing'],
    [checks, { checks: Array(3).fill({ key: 'a' }) }, /^checks: Too big: .* <=2 items/],
  ])('says what is wrong, and what to send', (schema, body, problem) => {
    const said = () => readBody(schema, body, { duration: '10m' })
    const [, wrong, example] = /^invalid body: (.*)\. Send (.*)\.$/.exec(messageOf(said)) ?? []
    expect(wrong).toMatch(problem)
    expect(example).toBe('{"duration":"10m"}')
  })
})

function messageOf(call: () => unknown): string {
  try {
    call()
    return ''
  } catch (error) {
    return (error as Error).message
  }
}
