// @ts-check
// npm run pictures: draws the pictures of the algorithms in docs/images with the library.
import { mkdirSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  fixedWindow,
  gcra,
  leakyBucket,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from 'sluice'
import { algorithmPicture, LIMIT, PER_MS } from './algorithm-picture.mjs'

const figures = { limit: LIMIT, per: PER_MS }

/** pictures gives each file's text. @returns {Record<string, string>} */
export function pictures() {
  return {
    'token-bucket.svg': algorithmPicture(
      'Token bucket, 10/10s burst 5',
      tokenBucket({ ...figures, burst: 5 }),
    ),
    'gcra.svg': algorithmPicture('GCRA, 10/10s burst 5', gcra({ ...figures, burst: 5 })),
    'leaky-bucket.svg': algorithmPicture(
      'Leaky bucket, 10/10s queue 5',
      leakyBucket({ ...figures, queue: 5 }),
    ),
    'fixed-window.svg': algorithmPicture(
      'Fixed window, 10/10s align clock',
      fixedWindow({ ...figures, align: 'clock' }),
    ),
    'sliding-window-counter.svg': algorithmPicture(
      'Sliding window counter, 10/10s',
      slidingWindowCounter(figures),
    ),
    'sliding-window-log.svg': algorithmPicture(
      'Sliding window log, 10/10s',
      slidingWindowLog(figures),
    ),
  }
}

if (process.argv[1] === import.meta.filename) {
  const folder = resolve(import.meta.dirname, '../docs/images/algorithms')
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(pictures())) {
    writeFileSync(resolve(folder, name), text)
    console.log(`docs/images/algorithms/${name}`)
  }
}
