import { algorithmOf, type Figures } from './algorithms.ts'
import { presetOf } from './presets.ts'

/** Choices are all that a visitor can set; they make up the address of the page. */
export interface Choices extends Figures {
  readonly algorithm: string
  readonly cost: string
  readonly client: string
  /** Requests a second of the picked client; 0 for none. */
  readonly rate: string
  /** How much faster time goes. */
  readonly speed: string
  /** The name of a preset that plays when the page is opened; empty for none. */
  readonly preset: string
}

/** clients are who can be picked. */
export const clients: readonly string[] = ['alice', 'bob', 'carol', 'dave']

/** speeds are how fast time can go. */
export const speeds: readonly string[] = ['1', '10', '60']

/** MOST_RATE is the highest rate that can be chosen, in requests a second. */
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

/** choicesFrom reads the query of an address. What does not exist is replaced by the default. */
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

/** queryOf is the shortest query that gives these choices again. */
export function queryOf(choices: Choices): string {
  const query = new URLSearchParams()
  for (const name of Object.keys(defaults) as (keyof Choices)[]) {
    if (choices[name] !== defaults[name]) query.set(name, choices[name])
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}
