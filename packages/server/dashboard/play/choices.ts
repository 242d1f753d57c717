import { algorithmOf, type Figures } from './algorithms.ts'
import { presetOf } from './presets.ts'

/** Choices are all inputs of the page; the query of its address stores them. */
export interface Choices extends Figures {
  readonly algorithm: string
  readonly cost: string
  readonly client: string
  /** Requests per second of the selected client; 0 for none. */
  readonly rate: string
  /** The factor by which time runs faster. */
  readonly speed: string
  /** The name of a preset that plays when the page is opened; empty for none. */
  readonly preset: string
}

/** clients are the clients that can be selected. */
export const clients: readonly string[] = ['alice', 'bob', 'carol', 'dave']

/** speeds are the selectable factors of time. */
export const speeds: readonly string[] = ['1', '10', '60']

/** MOST_RATE is the highest selectable rate, in requests per second. */
export const MOST_RATE = 50

const defaults: Choices = {
  algorithm: 'token-bucket',
  limit: '10',
  per: '10s',
  burst: '',
  queue: '',
  align: 'clock',
  cost: '1',
  client: 'alice',
  rate: '0',
  speed: '1',
  preset: '',
}

const LONGEST = 32

/** choicesFrom reads the query of an address, with defaults for missing and invalid values. */
export function choicesFrom(query: string): Choices {
  const given = new URLSearchParams(query)
  const read = { ...defaults } as { -readonly [Name in keyof Choices]: string }
  for (const name of Object.keys(defaults) as (keyof Choices)[]) {
    read[name] = (given.get(name) ?? defaults[name]).slice(0, LONGEST)
  }
  const rate = Number(read.rate)
  return {
    ...read,
    algorithm: algorithmOf(read.algorithm).name,
    align: read.align === 'request' ? 'request' : 'clock',
    client: clients.includes(read.client) ? read.client : defaults.client,
    rate: rate >= 0 && rate <= MOST_RATE ? read.rate : defaults.rate,
    speed: speeds.includes(read.speed) ? read.speed : defaults.speed,
    preset: presetOf(read.preset)?.name ?? '',
  }
}

/** queryOf returns the shortest query for these choices. */
export function queryOf(choices: Choices): string {
  const query = new URLSearchParams()
  for (const name of Object.keys(defaults) as (keyof Choices)[]) {
    if (choices[name] !== defaults[name]) query.set(name, choices[name])
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}
