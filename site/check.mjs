// @ts-check
// Opens every page of the built site in Chromium: no dead link or anchor, no error in the console,
// nothing wider than a phone, and a search that finds something. --pictures FOLDER keeps screenshots.
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { serve } from 'vitepress'

const PORT = 4183
const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } }
const base = `http://127.0.0.1:${PORT}`
const found = ['chromium', 'chromium-browser', 'google-chrome'].map((name) =>
  spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim(),
)
const executablePath = found.find((path) => path !== '')
if (!executablePath) throw new Error('needs Chromium: apt-get install chromium')
const pictures = process.argv[process.argv.indexOf('--pictures') + 1]
const folder = process.argv.includes('--pictures') ? pictures : undefined
if (folder) mkdirSync(folder, { recursive: true })

await serve({ root: import.meta.dirname, port: PORT })
const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
})
const problems = await checkPages()
problems.push(...(await checkSearch()))
if (folder) await takePictures(folder)
await browser.close()
for (const problem of problems) console.error(problem)
console.log(problems.length === 0 ? 'The site is good.' : `${problems.length} problems.`)
process.exit(problems.length === 0 ? 0 : 1)

/** Follows every link from the home page on. */
async function checkPages() {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } })
  const page = await context.newPage()
  /** @type {string[]} */
  const wrong = []
  let at = ''
  page.on('console', (line) => line.type() === 'error' && wrong.push(`${at}: ${line.text()}`))
  page.on('pageerror', (error) => wrong.push(`${at}: ${error.message}`))
  /** @type {Map<string, Set<string>>} */
  const ids = new Map()
  /** @type {[string, string][]} */
  const links = []
  const queue = ['/index.html']
  const seen = new Set(queue)
  for (const path of queue) {
    at = path
    const response = await page.goto(base + path, { waitUntil: 'domcontentloaded' })
    if (response?.status() !== 200) wrong.push(`${path}: ${response?.status()}`)
    const seenHere = await page.evaluate(() => ({
      ids: [...document.querySelectorAll('[id]')].map(({ id }) => id),
      links: [...document.querySelectorAll('a[href]')].map((a) => a.href),
      images: [...document.images].map(({ src }) => src),
      width: document.documentElement.scrollWidth,
    }))
    ids.set(path, new Set(seenHere.ids))
    if (seenHere.width > 390) wrong.push(`${path}: ${seenHere.width} px wide on a phone`)
    for (const href of seenHere.links) {
      const url = new URL(href)
      if (url.origin !== base) continue
      const to = url.pathname.endsWith('/') ? `${url.pathname}index.html` : url.pathname
      links.push([path, to + decodeURIComponent(url.hash)])
      if (!seen.has(to)) queue.push(to)
      seen.add(to)
    }
  }
  for (const [from, link] of links) {
    const [to, anchor] = link.split('#')
    if (anchor && !ids.get(to)?.has(anchor)) wrong.push(`${from}: there is no ${link}`)
  }
  console.log(`${seen.size} pages, ${links.length} links`)
  await context.close()
  return [...new Set(wrong)]
}

/** Types into the search box. */
async function checkSearch() {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(`${base}/guide/quick-start.html`)
  await page.click('.DocSearch-Button')
  await page.fill('.search-input', 'retryAfterMs')
  const result = page.locator('.results .result').first()
  await result.waitFor({ timeout: 10_000 })
  if (folder) await page.screenshot({ path: join(folder, 'search.png') })
  await page.close()
  return []
}

/** @param {string} folder */
async function takePictures(folder) {
  const shown = ['/index.html', '/guide/quick-start.html', '/guide/algorithms.html']
  shown.push('/reference/limiter.html', '/reference/api/sluice/interfaces/Limiter.html')
  shown.push(
    '/internals/benchmarks.html',
    '/operate/sizing.html',
    '/reference/api/sluice/index.html',
  )
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    for (const [name, viewport] of Object.entries(sizes)) {
      const context = await browser.newContext({ colorScheme, viewport })
      const page = await context.newPage()
      for (const path of shown) {
        await page.goto(base + path, { waitUntil: 'networkidle' })
        const file = `${path.slice(1, -5).replaceAll('/', '-')}-${name}-${colorScheme}.png`
        await page.screenshot({ path: join(folder, file) })
      }
      await context.close()
    }
  }
}
