import { describe, expect, it } from 'vitest'
import { changedBy } from './limited-change.ts'
import type { Refusal } from './refusal.ts'

const refusal: Refusal = {
  status: 429,
  fields: [
    ['content-type', 'application/problem+json'],
    ['cache-control', 'no-store'],
    ['retry-after', '30'],
  ],
  body: '{"status":429}',
}
const typeOf = ({ fields }: Refusal) => fields.find(([name]) => /^content-type$/i.test(name))?.[1]

describe('the result of onLimited', () => {
  it.each([undefined, null, {}, { body: refusal.body }])('changes nothing: %j', (change) => {
    expect(changedBy(refusal, change)).toMatchObject({ status: 429, body: refusal.body })
    expect(typeOf(changedBy(refusal, change))).toBe('application/problem+json')
  })

  it.each<[unknown, string, string]>([
    ['slow down', 'slow down', 'text/plain; charset=utf-8'],
    ['', '', 'text/plain; charset=utf-8'],
    [{ error: 'slow' }, '{"error":"slow"}', 'application/json'],
    [['slow'], '["slow"]', 'application/json'],
  ])('sends the body %j with the type of its own', (body, text, type) => {
    const changed = changedBy(refusal, { body })
    expect([changed.body, typeOf(changed)]).toEqual([text, type])
    expect(changed.fields).toContainEqual(['retry-after', '30'])
  })

  it('names the type of a body by a field', () => {
    const fields = [['Content-Type', 'application/problem+json; charset=utf-8']] as const
    expect(changedBy(refusal, { body: { title: 'slow' }, fields })).toEqual({
      status: 429,
      body: '{"title":"slow"}',
      fields: [['cache-control', 'no-store'], ['retry-after', '30'], ...fields],
    })
  })

  it.each<[unknown, RegExp]>([
    ['slow down', /result must be an object .* got "slow down"/],
    [true, /got true/],
    [['slow'], /got an array/],
    [{ stauts: 503 }, /takes status, body and fields, got "stauts"/],
    [{ headers: {} }, /got "headers"\. Headers are fields: \[\['name', 'value'\]\]/],
    [new Response('slow'), /takes status, body and fields, got/],
    [{ status: '503' }, /status of onLimited must be a whole number from 200 to 599, got "503"/],
    [{ status: 204 }, /response with a body, such as 429, got 204/],
    [{ body: 5 }, /body must be a text, a plain object or an array, got 5/],
    [{ body: new Map() }, /got an object/],
    [{ body: { big: 1n } }, /something that JSON can write, got/],
    [{ fields: { 'x-a': 'b' } }, /fields must be a list .* got an object/],
    [
      {
        fields: [
          ['x-a', 'b'],
          ['x-c', 5],
        ],
      },
      /got an array whose item 2 is none/,
    ],
  ])('%# gets a remedy', (change, message) => {
    expect(() => changedBy(refusal, change)).toThrow(
      expect.objectContaining({ code: 'SLUICE_OPTION', message: expect.stringMatching(message) }),
    )
  })
})
