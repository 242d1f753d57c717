import { readdirSync, readFileSync } from 'node:fs'
import { slidingWindowLog } from 'sluice'
import { describe, expect, it } from 'vitest'
import { play } from '../scripts/algorithm-picture.mjs'
import { pictures } from '../scripts/pictures.mjs'

const folder = 'docs/images/algorithms'

describe('the pictures of the algorithms', () => {
  it('are up to date; else run npm run pictures', () => {
    expect(readdirSync(folder).sort()).toEqual(Object.keys(pictures()).sort())
    for (const [name, text] of Object.entries(pictures())) {
      expect(readFileSync(`${folder}/${name}`, 'utf8')).toBe(text)
    }
  })

  it('show every request once', () => {
    const { requests } = play(slidingWindowLog({ limit: 10, per: '10s' }))
    expect(requests).toHaveLength(44)
    expect(requests.filter(({ allowed }) => allowed)).toHaveLength(20)
  })
})
