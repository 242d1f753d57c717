import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { findProgram } from '../find-program.ts'
import { buildServer } from '../threads/crew.ts'

const browsers = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** Pages opens pages in a real Chromium. */
export interface Pages {
  open(url: string, options?: BrowserContextOptions): Promise<Page>
  /** Returns the errors and warnings of pages so far. */
  complaints(): readonly string[]
  /** Drops complaints that a test has provoked. */
  forgive(provoked: RegExp): void
}

/**
 * usePages builds the pages and starts a browser for the tests of a file. A test fails if one of its
 * pages has reported an error, a warning or a violation of the content security policy.
 */
export function usePages(): Pages {
  let browser: Browser
  let complaints: string[] = []
  const closers: (() => Promise<void>)[] = []
  beforeAll(async () => {
    buildServer()
    // Root has no sandbox, and containers have little shared memory.
    const args = process.getuid?.() === 0 ? ['--no-sandbox', '--disable-dev-shm-usage'] : []
    browser = await chromium.launch({ executablePath: findProgram(browsers, ['chromium']), args })
  }, 300_000)
  afterEach(async () => {
    for (const close of closers.splice(0)) await close()
    const said = complaints
    complaints = []
    expect(said).toEqual([])
  })
  afterAll(() => browser?.close())
  return {
    async open(url, options) {
      const context = await browser.newContext(options)
      closers.push(() => context.close())
      const page = await context.newPage()
      page.setDefaultTimeout(10_000)
      page.on('pageerror', ({ message }) => complaints.push(message))
      page.on('console', (said) => {
        if (['error', 'warning'].includes(said.type())) complaints.push(said.text())
      })
      await page.goto(url)
      return page
    },
    complaints: () => complaints,
    forgive(provoked) {
      complaints = complaints.filter((complaint) => !provoked.test(complaint))
    },
  }
}

/** Code that runs in the page is text, since tests compile without the types of browsers. */
const findNameless = `[...document.querySelectorAll('a, button, input, select, textarea')]
  .filter((each) => {
    const label = each.getAttribute('aria-label') || each.labels?.[0]?.innerText || each.innerText
    return !label?.trim()
  })
  .map((each) => each.outerHTML)`

/** namelessControls returns controls without an accessible name. */
export function namelessControls(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(findNameless)
}

const findFaint = `(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number)
  const light = (colour) => {
    const [r, g, b] = parts(colour).map((part) => {
      const share = part / 255
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const behind = (element) => {
    const { backgroundColor } = getComputedStyle(element)
    return parts(backgroundColor)[3] === 0 && element.parentElement
      ? behind(element.parentElement)
      : backgroundColor
  }
  return [...document.querySelectorAll('body *')]
    .filter((each) => each.checkVisibility() && !each.matches(':disabled, :disabled *, option'))
    .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .filter((each) => {
      const a = light(getComputedStyle(each).color) + 0.05
      const b = light(behind(each)) + 0.05
      return Math.max(a, b) / Math.min(a, b) < 4.5
    })
    .map((each) => each.outerHTML)
})()`

/** faintTexts returns texts whose contrast is below 4.5 to 1. */
export function faintTexts(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(findFaint)
}

/** isTooWide tells whether a page scrolls horizontally. */
export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth')
}

/** inkOf returns the text colour of a page. */
export function inkOf(page: Page): Promise<string> {
  return page.evaluate<string>('getComputedStyle(document.body).color')
}
