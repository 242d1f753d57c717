import { describe, expect, it } from 'vitest'
import { calendarWindow } from '../index.ts'

const ruleOf = (options: object) => calendarWindow({ limit: 1, per: 'day', ...options })

describe('the zone of a calendar window', () => {
  it.each([
    ['europe/berlin', 'Europe/Berlin'],
    ['AMERICA/ARGENTINA/BUENOS_AIRES', 'America/Argentina/Buenos_Aires'],
    ['america/port-au-prince', 'America/Port-au-Prince'],
    ['africa/dar_es_salaam', 'Africa/Dar_es_Salaam'],
    ['europe/isle_of_man', 'Europe/Isle_of_Man'],
    ['antarctica/dumontdurville', 'Antarctica/DumontDUrville'],
    ['antarctica/mcmurdo', 'Antarctica/McMurdo'],
    ['america/knox_in', 'America/Knox_IN'],
    ['etc/gmt+5', 'Etc/GMT+5'],
    ['etc/gmt-14', 'Etc/GMT-14'],
    ['est5edt', 'EST5EDT'],
    ['nz-chat', 'NZ-CHAT'],
    ['gb-eire', 'GB-Eire'],
    ['w-su', 'W-SU'],
    ['us/east-indiana', 'US/East-Indiana'],
    ['utc', 'UTC'],
  ])('%s is spelled %s', (zone, name) => {
    expect(ruleOf({ zone }).params.zone).toBe(name)
  })

  it('is spelled as the runtime spells it, from any capitals', () => {
    const wrong = Intl.supportedValuesOf('timeZone').filter(
      (zone) => ruleOf({ zone: zone.toLowerCase() }).params.zone !== zone,
    )
    expect(wrong).toEqual([])
  })

  // Runtimes differ in which alias of a zone they prefer; the rule's text must not depend on that.
  it.each(['Asia/Calcutta', 'Asia/Kolkata', 'Europe/Kiev', 'Europe/Kyiv'])('stays %s', (zone) => {
    expect(ruleOf({ zone }).text).toBe(`1/day zone ${zone} calendar-window`)
  })

  it.each([
    'Europe/Berln',
    'Mars/Phobos',
    '+02:00',
    '',
    'Europe/Berlin ',
    'Europe/Zürich',
    null,
    7,
    ['UTC'],
    {},
  ])('refuses %j', (zone) => {
    const message = expect.stringMatching(
      /^rule "calendar-window": zone must be a time zone .*'Europe/,
    )
    expect(() => ruleOf({ zone })).toThrow(
      expect.objectContaining({ code: 'SLUICE_OPTION', message }),
    )
  })
})

describe('the first day of a calendar window', () => {
  it.each([
    ['week', '7', 7],
    ['week', 1, 1],
    ['month', 31, 31],
    ['month', '15', 15],
    ['year', '04-06', '04-06'],
    ['year', '02-29', '02-29'],
    ['year', '01-01', 1],
    ['year', 1, 1],
    ['hour', 1, 1],
  ])('of a %s accepts %j', (per, startsOn, kept) => {
    expect(ruleOf({ per, startsOn }).params.startsOn).toBe(kept)
  })

  it.each([
    ['hour', 2, "left out with per 'hour'"],
    ['day', '04-06', "left out with per 'day'"],
    ['week', 0, 'a day of the week, from 1 (Monday) to 7 (Sunday)'],
    ['week', 8, 'a day of the week, from 1 (Monday) to 7 (Sunday)'],
    ['month', 32, 'a day of the month, from 1 to 31'],
    ['month', 1.5, 'a day of the month, from 1 to 31'],
    ['month', '04-06', 'a day of the month, from 1 to 31'],
    ['month', [3], 'a day of the month, from 1 to 31'],
    ['month', null, 'a day of the month, from 1 to 31'],
    ['year', 2, "a month and day, such as '04-06'"],
    ['year', '02-30', "a month and day, such as '04-06'"],
    ['year', '13-01', "a month and day, such as '04-06'"],
    ['year', '4-6', "a month and day, such as '04-06'"],
  ])('of a %s refuses %j', (per, startsOn, what) => {
    const message = expect.stringContaining(`startsOn must be ${what}, got `)
    expect(() => ruleOf({ per, startsOn })).toThrow(
      expect.objectContaining({ code: 'SLUICE_OPTION', message }),
    )
  })
})
