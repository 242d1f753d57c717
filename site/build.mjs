// @ts-check
// npm run docs: builds the documentation as a static site in site/dist. A dead link is an error.
// --serve serves it on port 4173, --check looks at every page in Chromium.
import { installPeers } from '../bench/lib/peers.mjs'

installPeers(new URL('./', import.meta.url))
const { writePages } = await import('./pages.mjs')
const { build, serve } = await import('vitepress')
await writePages()
await build(import.meta.dirname)
if (process.argv.includes('--check')) await import('./check.mjs')
if (process.argv.includes('--serve')) await serve({ root: import.meta.dirname, port: 4173 })
