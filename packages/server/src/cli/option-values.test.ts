import { expect, it } from 'vitest'
import { choiceOption, durationOption, wholeOption } from './option-values.ts'

it.each([
  ['500ms', 500],
  ['90s', 90_000],
  ['10m', 600_000],
  ['1h', 3_600_000],
  ['400d', 34_560_000_000],
  ['0s', 0],
])('reads the time %s', (text, ms) => expect(durationOption('--for', text)).toBe(ms))

it.each(['', '10', '1.5s', '-1s', '1w', '401d', '34560000001ms'])('refuses the time %j', (text) =>
  expect(() => durationOption('--for', text)).toThrow(
    `--for must be a time from 0ms to 400d, such as 500ms, 90s, 10m or 1h, got "${text}".`,
  ),
)

it('refuses a time that is too short', () =>
  expect(() => durationOption('--for', '0s', 1)).toThrow('from 1ms to 400d'))

it('reads whole numbers within a range', () => {
  expect(wholeOption('--top', '1000', 0, 1_000)).toBe(1_000)
  for (const text of ['', '-1', '1001', '1e2', '1.0', ' 1', '9'.repeat(30)]) {
    expect(() => wholeOption('--top', text, 0, 1_000)).toThrow(
      `--top must be a whole number from 0 to 1,000, got "${text}".`,
    )
  }
})

it('reads one of the words it knows', () => {
  expect(choiceOption('--size', 'small', ['small', 'big'])).toBe('small')
  expect(() => choiceOption('--size', 'huge', ['small', 'big', 'tall'])).toThrow(
    '--size must be small, big or tall, got "huge".',
  )
})
