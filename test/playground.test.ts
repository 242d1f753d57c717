import type { Page } from 'playwright-core'
import { afterEach, describe, expect, it } from 'vitest'
import { faintTexts, inkOf, isTooWide, namelessControls, usePages } from './dashboard/pages.ts'
import { closeAll, settingsOf, start } from './server/service.ts'

const pages = usePages()
afterEach(closeAll)

async function open(query = '', options = {}): Promise<Page> {
  const { apiUrl } = await start(settingsOf({}))
  return pages.open(`${apiUrl}/play${query}`, options)
}

async function left(page: Page, client: string): Promise<number> {
  return Number(await page.locator(`[data-client=${client}] [data-role=remaining]`).innerText())
}

/** Returns the requests that each algorithm has allowed or refused to the selected client. */
async function counts(page: Page, role: 'allowed' | 'refused'): Promise<Record<string, number>> {
  const rows = await page.locator('[data-algorithm]').all()
  const all: Record<string, number> = {}
  for (const row of rows) {
    const text = await row.locator(`[data-role=${role}]`).innerText()
    all[(await row.getAttribute('data-algorithm')) ?? ''] = Number(/\d+/.exec(text)?.[0])
  }
  return all
}

const all = (value: number) => ({
  'token-bucket': value,
  gcra: value,
  'leaky-bucket': value,
  'fixed-window': value,
  'sliding-window-counter': value,
  'sliding-window-log': value,
})

describe('the playground', () => {
  it('spends only the bucket of the client that sends requests', async () => {
    const page = await open('?per=300d')
    const button = page.getByRole('button', { name: 'Request as alice' })
    for (let i = 0; i < 3; i += 1) await button.click()
    expect(await left(page, 'alice')).toBe(7)
    await button.press('Enter')
    expect(await left(page, 'alice')).toBe(6)
    for (let i = 0; i < 8; i += 1) await button.click()
    expect(await left(page, 'alice')).toBe(0)
    for (const other of ['bob', 'carol', 'dave']) expect(await left(page, other)).toBe(10)
    expect(await counts(page, 'allowed')).toEqual({ ...all(10), 'leaky-bucket': 11 })
    expect(await counts(page, 'refused')).toEqual({ ...all(2), 'leaky-bucket': 1 })
    await page.getByRole('radio', { name: /^bob/ }).check()
    await page.getByRole('button', { name: 'Request as bob' }).click()
    expect([await left(page, 'alice'), await left(page, 'bob')]).toEqual([0, 9])
  })

  it('refills over time, and spends while a button is held or a rate is set', async () => {
    const page = await open('?limit=10&per=2s')
    const button = page.getByRole('button', { name: 'Request as alice' })
    for (let i = 0; i < 5; i += 1) await button.click()
    await expect.poll(() => left(page, 'alice'), { timeout: 5_000 }).toBe(10)
    await button.hover()
    await page.mouse.down()
    await expect
      .poll(async () => (await counts(page, 'allowed'))['token-bucket'], { timeout: 5_000 })
      .toBeGreaterThan(8)
    await page.mouse.up()
    await page.getByRole('slider', { name: /Rate/ }).fill('30')
    await expect
      .poll(async () => (await counts(page, 'refused'))['token-bucket'], { timeout: 5_000 })
      .toBeGreaterThan(10)
    expect(await left(page, 'bob')).toBe(10)
    await expect.poll(() => page.url()).toContain('rate=30')
  })

  it('shows that only a fixed window admits twice the limit across an edge', async () => {
    const page = await open()
    await page.getByRole('button', { name: 'Window edge' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor({ timeout: 20_000 })
    const allowed = await counts(page, 'allowed')
    expect(allowed['fixed-window']).toBe(20)
    expect(allowed['sliding-window-log']).toBe(10)
    expect(Math.max(...Object.values({ ...allowed, 'fixed-window': 0 }))).toBeLessThan(20)
    await expect.poll(() => page.url()).toMatch(/\/play\?preset=window-edge$/)
  })

  it('is restored from its URL', async () => {
    const page = await open(
      '?algorithm=fixed-window&limit=3&per=2s&preset=window-edge&client=carol',
    )
    await page.getByRole('button', { name: 'Resume' }).waitFor({ timeout: 20_000 })
    expect((await counts(page, 'allowed'))['fixed-window']).toBe(6)
    expect(await page.getByLabel('Algorithm').inputValue()).toBe('fixed-window')
    expect(await page.locator('[data-role=code]').innerText()).toContain(
      "createLimiter(fixedWindow({ limit: 3, per: '2s', align: 'clock' }))",
    )
    await page.getByLabel('Algorithm').selectOption('gcra')
    await page.getByLabel('Burst').fill('7')
    await expect.poll(() => page.url()).toContain('burst=7')
    const again = await pages.open(page.url())
    expect(await again.locator('[data-role=code]').innerText()).toContain(
      "createLimiter(gcra({ limit: 3, per: '2s', burst: 7 }))",
    )
  })

  it('shows the errors of the library for invalid numbers', async () => {
    const page = await open()
    await page.getByLabel('Burst').fill('0')
    expect(await page.getByRole('alert').innerText()).toMatch(/burst must be a whole number/)
    await page.getByLabel('Burst').fill('')
    await page.getByLabel('Cost of a request').fill('99')
    await page.getByRole('button', { name: 'Request as alice' }).click()
    expect(await page.getByRole('alert').innerText()).toMatch(/99/)
    await page.getByLabel('Limit').fill('<b>x</b>')
    expect(await page.getByRole('alert').innerText()).toMatch(/limit must be a whole number/)
    // One error for all algorithms, and no code to copy.
    expect(await page.getByText(/limit must be a whole number/).count()).toBe(1)
    expect(await page.locator('[data-role=code]').count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Copy' }).count()).toBe(0)
  })

  it('accepts parameters only for algorithms that have them', async () => {
    const page = await open()
    const isDisabled = () =>
      Promise.all(['Burst', 'Queue'].map((name) => page.getByLabel(name).isDisabled()))
    expect(await isDisabled()).toEqual([false, true])
    await page.getByLabel('Algorithm').selectOption('leaky-bucket')
    expect(await isDisabled()).toEqual([true, false])
    await page.getByLabel('Algorithm').selectOption('fixed-window')
    expect(await isDisabled()).toEqual([true, true])
  })

  it.each(['light', 'dark'] as const)(
    'fits a small screen, has names, and can be read in %s',
    async (scheme) => {
      const options = { viewport: { width: 360, height: 740 }, colorScheme: scheme }
      const page = await open('', options)
      expect(await isTooWide(page)).toBe(false)
      expect(await namelessControls(page)).toEqual([])
      expect(await faintTexts(page)).toEqual([])
      const before = await inkOf(page)
      await page.getByLabel('Theme').selectOption(scheme === 'light' ? 'dark' : 'light')
      expect(await inkOf(page)).not.toBe(before)
      await page.reload()
      expect(await inkOf(page)).not.toBe(before)
    },
  )
})
