import { describe, expect, it } from 'vitest'
import {
  calendarWindow,
  fixedWindow,
  gcra,
  leakyBucket,
  parseRule,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
  unlimited,
} from '../index.ts'
import { seededRandom } from '../testing/random.ts'
import { ruleMakers } from '../testing/streams.ts'

describe('parseRule', () => {
  it.each([
    ['100/1m burst 20 token-bucket', tokenBucket({ limit: 100, per: '1m', burst: 20 })],
    ['100/1m', tokenBucket({ limit: 100, per: '1m' })],
    ['  7/1s   gcra\tburst 3 ', gcra({ limit: 7, per: '1s', burst: 3 })],
    ['5/1h fixed-window align clock', fixedWindow({ limit: 5, per: '1h', align: 'clock' })],
    ['5/1h fixed-window', fixedWindow({ limit: 5, per: '1h' })],
    [
      '5/250ms sliding-window-log name api',
      slidingWindowLog({ limit: 5, per: '250ms', name: 'api' }),
    ],
    ['5/1d sliding-window-counter', slidingWindowCounter({ limit: 5, per: '1d' })],
    ['5/1s leaky-bucket queue 0', leakyBucket({ limit: 5, per: '1s', queue: 0 })],
    ['5000/month calendar-window', calendarWindow({ limit: 5_000, per: 'month' })],
    ['5000/month', calendarWindow({ limit: 5_000, per: 'month' })],
    [
      '1000/month zone Europe/Berlin startsOn 15',
      calendarWindow({ limit: 1_000, per: 'month', zone: 'Europe/Berlin', startsOn: 15 }),
    ],
    [
      '9/year startsOn 04-06 zone etc/gmt+12 name tax',
      calendarWindow({ limit: 9, per: 'year', zone: 'Etc/GMT+12', startsOn: '04-06', name: 'tax' }),
    ],
    ['unlimited', unlimited()],
    ['unlimited name staff', unlimited({ name: 'staff' })],
  ])('reads %j', (text, rule) => {
    expect(parseRule(text)).toEqual(rule)
  })

  it('parses the text of a rule back into that rule', () => {
    const random = seededRandom(20)
    for (const make of Object.values(ruleMakers)) {
      for (let i = 0; i < 200; i += 1) {
        const rule = make(random)
        expect(parseRule(rule.text)).toEqual(rule)
      }
    }
    expect(parseRule(tokenBucket({ limit: 1, per: 1.501 }).text).perUs).toBe(1_501)
    expect(parseRule(unlimited().text)).toEqual(unlimited())
  })

  it('writes the same text for rules that decide alike', () => {
    const text = tokenBucket({ limit: 60, per: '60s', burst: 60, name: 'api' }).text
    expect([text, tokenBucket({ limit: 60, per: 60_000 }).text]).toEqual(['60/1m', '60/1m'])
    expect(fixedWindow({ limit: 5, per: '24h', align: 'clock' }).text).toBe(
      '5/1d align clock fixed-window',
    )
    const zone = 'EUROPE/berlin'
    expect(calendarWindow({ limit: 5, per: 'year', zone, startsOn: '01-01' }).text).toBe(
      '5/year zone Europe/Berlin calendar-window',
    )
  })

  it.each([
    ['', 'SLUICE_RULE_SYNTAX'],
    ['100', 'SLUICE_RULE_SYNTAX'],
    ['/1m', 'SLUICE_RULE_SYNTAX'],
    ['1.5/1m', 'SLUICE_RULE_SYNTAX'],
    ['-1/1m', 'SLUICE_RULE_SYNTAX'],
    ['100/1m tokenbucket', 'SLUICE_RULE_SYNTAX'],
    ['100/1m burst', 'SLUICE_RULE_SYNTAX'],
    ['100/1m burst x', 'SLUICE_RULE_SYNTAX'],
    ['100/1m burst 2 burst 3', 'SLUICE_RULE_SYNTAX'],
    ['100/1m gcra token-bucket', 'SLUICE_RULE_SYNTAX'],
    ['100/1m toString', 'SLUICE_RULE_SYNTAX'],
    ['100/1m __proto__', 'SLUICE_RULE_SYNTAX'],
    ['unlimited burst 5', 'SLUICE_RULE_SYNTAX'],
    [undefined, 'SLUICE_RULE_SYNTAX'],
    [{}, 'SLUICE_RULE_SYNTAX'],
    ['0/1m', 'SLUICE_RULE_LIMIT'],
    ['1000000000001/1m', 'SLUICE_RULE_LIMIT'],
    ['100/1w', 'SLUICE_DURATION'],
    ['100/m', 'SLUICE_DURATION'],
    ['100/60000', 'SLUICE_DURATION'],
    ['100/1d calendar-window', 'SLUICE_DURATION'],
    ['100/month token-bucket', 'SLUICE_DURATION'],
    ['100/month burst 5', 'SLUICE_OPTION'],
    ['100/1m zone Europe/Berlin', 'SLUICE_OPTION'],
    ['100/day zone Europe/Berln', 'SLUICE_OPTION'],
    ['100/day startsOn 2', 'SLUICE_OPTION'],
    ['100/week startsOn 8', 'SLUICE_OPTION'],
    ['100/month zone', 'SLUICE_RULE_SYNTAX'],
    ['100/1m burst 0', 'SLUICE_RULE_BURST'],
    ['100/1m fixed-window burst 5', 'SLUICE_OPTION'],
    ['100/1m fixed-window align utc', 'SLUICE_OPTION'],
  ])('refuses %j with %s', (text, code) => {
    const message = expect.stringMatching(/^cannot read the rule /)
    expect(() => parseRule(text as never)).toThrow(expect.objectContaining({ code, message }))
  })
})
