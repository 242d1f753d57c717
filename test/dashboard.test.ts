import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { parseRule } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import { faintTexts, inkOf, isTooWide, namelessControls, usePages } from './dashboard/pages.ts'
import { startRedis } from './redis/server.ts'
import { as, closeAll, json, settingsOf, start } from './server/service.ts'

const pages = usePages()
afterEach(closeAll)

const routes = [
  { name: 'search', path: '/search', cost: 3 },
  { name: 'login', path: '/login', rules: [parseRule('2/1h name logins')] },
  { name: 'trial', path: '/trial', rules: [parseRule('1/1h')], shadow: true },
  { name: 'rest', path: '/**' },
]

/** Sends requests one after the other, so that the decisions are predictable. */
async function send(times: number, url: string, user: string): Promise<void> {
  for (let i = 0; i < times; i += 1) await (await fetch(url, as(user))).text()
}

/** Returns the table's counts for a route: allowed and refused in the last minutes. */
async function row(page: Page, route: string): Promise<string[]> {
  const found = page.locator(`tr[data-route="${route}"] td`)
  return (await found.count()) === 0 ? [] : (await found.allInnerTexts()).slice(1, 3)
}

async function find(page: Page, text: string): Promise<void> {
  await page.getByLabel('Key, or a part of it').fill(text)
  await page.keyboard.press('Enter')
}

async function show(page: Page, key: string): Promise<void> {
  await page.getByLabel('Key, or a part of it').fill(key)
  await page.getByRole('button', { name: 'Open exact key' }).click()
  await page.locator('[data-role=tier]').waitFor()
}

function left(page: Page, limiter: string): Promise<string> {
  return page.locator(`[data-limiter=${limiter}] [data-role=remaining]`).innerText()
}

/** Counts the pixels of the latency chart that have a colour of the style sheet. */
function inkedPixels(page: Page, name: string): Promise<number> {
  return page.evaluate<number>(`(() => {
    const canvas = document.querySelector('canvas[aria-label^="Decision time"]')
    const colour = getComputedStyle(document.documentElement).getPropertyValue('${name}')
    const [r, g, b] = colour.match(/\\d+/g).map(Number)
    // Chromium warns about a canvas that is read repeatedly, so read a copy.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d')
    copy.drawImage(canvas, 0, 0)
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height)
    let count = 0
    for (let i = 0; i < data.length; i += 4) {
      // Edges are mixed with what is below.
      const apart = [r, g, b].map((part, at) => Math.abs(part - data[i + at]))
      if (data[i + 3] > 128 && Math.max(...apart) < 40) count += 1
    }
    return count
  })()`)
}

/** Returns the labels that the latency chart draws next. */
function timeLabels(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`new Promise((resolve) => {
    const canvas = document.querySelector('canvas[aria-label^="Decision time"]')
    const context = canvas.getContext('2d')
    const labels = []
    context.fillText = (text) => {
      if (labels.length === 0) setTimeout(() => resolve(labels.filter((each) => /:/.test(each))), 0)
      labels.push(text)
    }
  })`)
}

/** Returns the colours of the legends' markers. */
function markers(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll('.u-series')]
    .filter((each) => each.querySelector('.u-marker').style.border)
    .map((each) => getComputedStyle(each.querySelector('.u-marker')).borderTopColor)`)
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

const said = (page: Page) => page.locator('[data-role=said]').innerText()

describe('the dashboard', () => {
  it('shows decisions and their keys live', async () => {
    const { apiUrl, gatewayUrl } = await start(settingsOf({}, routes))
    await send(3, `${gatewayUrl}/a`, 'early')
    const page = await pages.open(apiUrl)
    await expect.poll(() => row(page, 'rest'), { timeout: 5_000 }).toEqual(['3', '0'])
    await send(7, `${gatewayUrl}/a`, 'alice')
    await send(2, `${gatewayUrl}/search`, 'bob')
    await expect.poll(() => row(page, 'rest'), { timeout: 5_000 }).toEqual(['8', '2'])
    expect(await row(page, 'search')).toEqual(['1', '1'])
    const limited = page.getByRole('region', { name: 'Top clients by refusals' })
    await expect
      .poll(() => limited.getByRole('link').allInnerTexts())
      .toEqual(['x-user:alice', 'x-user:bob'])
    const talking = page
      .getByRole('region', { name: 'Top clients by requests' })
      .getByRole('listitem')
    expect(await talking.first().innerText()).toMatch(/x-user:alice.*\b7$/s)
    expect(
      await page.locator('[data-rule=token-bucket] [data-role=refused]').first().innerText(),
    ).toBe('2 refused')
    expect(await page.locator('[data-role=store]').innerText()).toContain('connected')
  })

  it('shows a key and why it was refused, and can reset, block and upgrade it', async () => {
    const { apiUrl, gatewayUrl } = await start(settingsOf({}, routes))
    await send(6, `${gatewayUrl}/a`, 'alice')
    await send(1, `${gatewayUrl}/login`, 'alice')
    const page = await pages.open(apiUrl)
    await show(page, 'x-user:alice')
    expect([await left(page, 'tiers'), await left(page, 'login')]).toEqual(['0', '1'])
    expect(await page.locator('[data-role=tier]').innerText()).toBe('free')
    const decisions = page.locator('.decisions')
    await expect
      .poll(() => decisions.innerText())
      .toMatch(/rule token-bucket refused: cost 1, 0 left, retry in 12 min/)
    expect(await decisions.getByRole('listitem').count()).toBeLessThanOrEqual(10)
    await send(1, `${gatewayUrl}/search`, 'alice')
    await expect.poll(() => decisions.innerText(), { timeout: 5_000 }).toMatch(/cost 3, 0 left/)

    await press(page, 'Reset')
    await expect.poll(() => said(page)).toBe('Reset.')
    await expect.poll(() => left(page, 'tiers')).toBe('5')
    await press(page, 'Block')
    await page.locator('[data-role=blocked]').waitFor()
    expect((await fetch(gatewayUrl, as('alice'))).status).toBe(429)
    await expect
      .poll(() => decisions.innerText(), { timeout: 5_000 })
      .toMatch(/blocked for another/)
    await press(page, 'Unblock')
    await page.locator('[data-role=blocked]').waitFor({ state: 'detached' })
    expect((await fetch(gatewayUrl, as('alice'))).status).toBe(200)

    await page.getByLabel('New tier').selectOption('pro')
    await press(page, 'Set tier')
    await expect.poll(() => left(page, 'tiers')).toBe('99')
    await press(page, 'Remove tier')
    await expect.poll(() => left(page, 'tiers')).toBe('4')
    await page.getByLabel('Own rules').fill('50/1h burst 0')
    await press(page, 'Set rules')
    await expect.poll(() => said(page)).toMatch(/burst must be a whole number/)
    await page.getByLabel('Own rules').fill('50/1h, 500/1d name daily')
    await press(page, 'Set rules')
    await page.locator('[data-rule=daily]').waitFor()
    expect(await page.locator('[data-limiter=tiers]').count()).toBe(2)
    await press(page, 'Remove rules')
    await page.locator('[data-rule=daily]').waitFor({ state: 'detached' })

    expect(page.url()).toContain('?key=x-user%3Aalice')
    await page.reload()
    await expect.poll(() => left(page, 'tiers')).toBe('4')
    pages.forgive(/status of 400/)
  })

  it('distinguishes refusals from requests admitted in shadow mode', async () => {
    const { apiUrl, gatewayUrl } = await start(settingsOf({}, routes))
    await send(7, `${gatewayUrl}/a`, 'alice')
    await send(4, `${gatewayUrl}/trial`, 'alice')
    const page = await pages.open(`${apiUrl}/?key=x-user%3Aalice`)
    const limited = page.getByRole('region', { name: 'Top clients by refusals' })
    await expect.poll(() => limited.innerText()).toMatch(/2 refused · 3 in shadow mode/)
    const rules = page.getByRole('region', { name: 'Refusals by rule' }).getByRole('listitem')
    await expect.poll(() => rules.last().innerText()).toMatch(/3 in shadow mode/)
    expect(await rules.last().locator('[data-role=refused]').count()).toBe(0)
    await expect.poll(() => page.locator('.decisions .shadowed').count()).toBe(3)
    expect(await page.locator('.decisions .refused').count()).toBe(2)
  })

  it('predicts the next decision for a key in a sentence', async () => {
    const { apiUrl, gatewayUrl } = await start(settingsOf({}, routes))
    const page = await pages.open(`${apiUrl}/?key=x-user%3Aalice`)
    const verdict = page.locator('[data-role=verdict]')
    await expect.poll(() => verdict.innerText()).toBe('✓ Would pass everywhere now')
    const card = (limiter: string) => page.locator(`[data-limiter=${limiter}]`).innerText()
    expect(await card('tiers')).toMatch(/search: a request costs 3/)
    expect(await card('trial')).toMatch(/a request costs 1.*shadow/s)
    expect(await card('login')).not.toMatch(/shadow/)
    await send(3, gatewayUrl, 'alice')
    await expect
      .poll(() => verdict.innerText(), { timeout: 3_000 })
      .toMatch(/^✕ Refused now on search: cost 3, 2 left, passes in 1[12] min( \d+ s)?$/)
    await send(2, gatewayUrl, 'alice')
    await send(1, `${gatewayUrl}/trial`, 'alice')
    await expect
      .poll(() => verdict.innerText(), { timeout: 3_000 })
      .toMatch(
        /on search: cost 3, 0 left.*on rest: cost 1, 0 left.*In shadow mode, trial would refuse/s,
      )
    await send(1, `${gatewayUrl}/login`, 'bob')
    await send(6, `${gatewayUrl}/a`, 'bob')
    const rules = page.getByRole('region', { name: 'Refusals by rule' })
    await expect.poll(() => rules.innerText()).toMatch(/rest · free token-bucket 5\/1h/)
  })

  it('finds keys by substring', async () => {
    const { apiUrl, gatewayUrl } = await start(settingsOf({}, routes))
    for (const user of ['ann', 'anna', 'bob']) await send(1, gatewayUrl, user)
    const page = await pages.open(apiUrl)
    await find(page, 'ann')
    const found = page.locator('.found a')
    await found.first().waitFor()
    expect((await found.allInnerTexts()).sort()).toEqual(['x-user:ann', 'x-user:anna'])
    await found.last().click()
    await page.locator('[data-role=tier]').waitFor()
    expect(await left(page, 'tiers')).toBe('4')
    const [other] = await Promise.all([
      page.context().waitForEvent('page'),
      page
        .getByRole('link', { name: 'x-user:bob' })
        .first()
        .click({ modifiers: ['Control'] }),
    ])
    await other.waitForURL(/\?key=x-user%3Abob$/)
    expect(page.url()).toMatch(/\?key=x-user%3Aanna?$/)
  })

  it('finds keys that are full again, and keys of a route with its own rules', async () => {
    const tiers = { free: [parseRule('2/1s')] }
    const { apiUrl, gatewayUrl } = await start(settingsOf({ tiers }, routes))
    const page = await pages.open(apiUrl)
    await send(1, `${gatewayUrl}/login`, 'lea')
    await send(20, `${gatewayUrl}/a`, 'alice')
    const limited = page.getByRole('region', { name: 'Top clients by refusals' })
    await expect.poll(() => limited.innerText(), { timeout: 5_000 }).toMatch(/last on rest/)
    const inUse = async () => (await fetch(`${apiUrl}/v1/keys?filter=alice`)).json()
    await expect.poll(inUse, { timeout: 5_000 }).toMatchObject({ keys: [] })
    const found = page.locator('.found a')
    await find(page, 'alic')
    await expect.poll(() => found.allInnerTexts()).toEqual(['x-user:alice'])
    await find(page, 'lea')
    await expect.poll(() => found.allInnerTexts()).toEqual(['x-user:lea'])
  })

  it('reports that no key matches, and opens none', async () => {
    const { apiUrl, gatewayUrl } = await start(settingsOf({}, routes))
    await send(1, gatewayUrl, 'alice')
    const page = await pages.open(apiUrl)
    await find(page, '127.0')
    const searched = page.locator('[data-role=searched]')
    await expect
      .poll(() => searched.innerText())
      .toMatch(/^No key in use contains ‘127\.0’; unused keys are not listed\./)
    expect(await page.locator('[data-role=key]').count()).toBe(0)
    expect(page.url()).not.toContain('key=')
    await press(page, 'Open exact key')
    await page.locator('[data-role=tier]').waitFor()
    expect(page.url()).toContain('?key=127.0')
    expect(await searched.innerText()).toBe('')
    for (let i = 0; i < 10; i += 1) await send(1, gatewayUrl, `many${i}`)
    await find(page, 'many')
    await expect.poll(() => searched.innerText()).toMatch(/There may be more/)
    expect(await page.locator('.found a').count()).toBe(10)
  })

  it.each([360, 1_280])('draws a single second with traffic on %d pixels', async (width) => {
    const { apiUrl, gatewayUrl } = await start(settingsOf({}, routes))
    const page = await pages.open(apiUrl, { viewport: { width, height: 740 } })
    await expect.poll(() => page.locator('canvas[aria-label^="Decision time"]').count()).toBe(1)
    const median = () => inkedPixels(page, '--accent')
    const p99 = () => inkedPixels(page, '--warn')
    expect([await median(), await p99()]).toEqual([0, 0])
    await send(1, gatewayUrl, 'alice')
    // Seconds without any value come before and after it.
    await sleep(3_500)
    expect(await median()).toBeGreaterThan(4)
    expect(await p99()).toBeGreaterThan(4)
    const labels = await timeLabels(page)
    expect(labels.length).toBeGreaterThanOrEqual(2)
    expect(labels.filter((label) => !label.endsWith(':00'))).toEqual([])
  })

  it('shows the origin of each rule', async () => {
    const overrides = { 'x-user:vip': [parseRule('500/1h')] }
    const tiers = { free: [parseRule('60/1m burst 20')] }
    const { apiUrl } = await start(settingsOf({ tiers, overrides }, routes))
    const page = await pages.open(apiUrl)
    const card = (limiter: string) => page.locator(`[data-limiter=${limiter}]`)
    await show(page, 'x-user:alice')
    expect(await card('tiers').innerText()).toMatch(/a rule of tier free/)
    expect(await card('login').innerText()).toMatch(/a rule of route login/)
    const words = card('tiers').getByText('60 per 1 min, at most 20 at once (token-bucket)')
    expect((await words.boundingBox())?.height).toBeLessThan(30)
    await show(page, 'x-user:vip')
    await expect.poll(() => card('tiers').innerText()).toMatch(/its own rule/)
    expect(await page.locator('caption').innerText()).toMatch(/In shadow mode: refused by a rule/)
  })

  it('refills gauges between two readings', async () => {
    const tiers = { free: [parseRule('10/5s')] }
    const { apiUrl, gatewayUrl } = await start(settingsOf({ tiers }))
    const page = await pages.open(apiUrl)
    await show(page, 'x-user:alice')
    await send(10, gatewayUrl, 'alice')
    await expect.poll(() => left(page, 'tiers'), { timeout: 3_000 }).not.toBe('10')
    // From now on no request is answered, and the gauge must still advance.
    await page.route('**/v1/keys/*', () => {})
    // The target of the animation, which takes a moment.
    const shown = () =>
      page.evaluate<[number, number]>(`[
        Number(document.querySelector('[data-role=remaining]').innerText),
        Math.round(Number.parseFloat(document.querySelector('.gauges .bar > span').style.width) / 10),
      ]`)
    const [before] = await shown()
    await expect.poll(async () => (await shown())[0]).toBeGreaterThan(before)
    for (let i = 0; i < 10; i += 1) {
      const [left, bar] = await shown()
      expect(bar).toBe(left)
      await sleep(50)
    }
    await expect.poll(() => left(page, 'tiers'), { timeout: 8_000 }).toBe('10')
  })

  it('asks for a token, and offers only what it permits', async () => {
    const tokens = [
      { token: 'r'.repeat(20), access: 'read' },
      { token: 'f'.repeat(20), access: 'full' },
    ] as const
    const { apiUrl } = await start(settingsOf({ admin: { tokens } }, routes))
    const page = await pages.open(apiUrl)
    await page.getByLabel('Token').waitFor()
    expect(await page.locator('main').innerText()).not.toMatch(/Decisions|Store/)
    await page.getByLabel('Token').fill('wrong')
    await press(page, 'Open dashboard')
    await expect.poll(() => page.getByRole('alert').innerText()).toMatch(/unknown/)
    await page.getByLabel('Token').fill(tokens[0].token)
    await press(page, 'Open dashboard')
    await show(page, 'x-user:alice')
    expect(await page.getByRole('button', { name: 'Reset' }).count()).toBe(0)
    expect(await page.locator('main').innerText()).toMatch(/has read access only/)
    await press(page, 'Forget the token')
    await page.getByLabel('Token').fill(tokens[1].token)
    await press(page, 'Open dashboard')
    await press(page, 'Reset')
    await expect.poll(() => said(page)).toBe('Reset.')
    expect(await page.evaluate('localStorage.length')).toBe(0)
    pages.forgive(/status of 401/)
  })

  it('shows that it reconnects, and does so when the server is back', async () => {
    const tiers = { free: [parseRule('10/5s')] }
    const first = await start(settingsOf({ tiers }, routes))
    await send(9, first.gatewayUrl, 'alice')
    const page = await pages.open(`${first.apiUrl}/?key=x-user%3Aalice`)
    const connection = page.locator('[data-role=connection]')
    const [lost, unread] = ['no-connection', 'unread'].map((role) =>
      page.locator(`[data-role=${role}]`),
    )
    await expect.poll(() => connection.innerText()).toMatch(/live/)
    await page.locator('[data-role=tier]').waitFor()
    expect([await lost.innerText(), await unread.innerText()]).toEqual(['', ''])
    await first.close()
    await expect.poll(() => connection.innerText(), { timeout: 5_000 }).toMatch(/reconnecting/)
    expect(await lost.innerText()).toMatch(
      /^Disconnected since \d+:\d\d:\d\d.*; the data is from then\.$/,
    )
    await expect
      .poll(() => unread.innerText())
      .toMatch(/^The (current state|server) is .* Last update: \d/)
    // The remaining units are unknown: the gauge must not look refilled.
    const before = await left(page, 'tiers')
    await sleep(1_000)
    expect(await left(page, 'tiers')).toBe(before)
    const port = Number(new URL(first.apiUrl).port)
    const second = await start(settingsOf({ api: { host: '127.0.0.1', port } }, routes))
    await expect.poll(() => connection.innerText(), { timeout: 15_000 }).toMatch(/live/)
    await expect.poll(async () => (await lost.innerText()) + (await unread.innerText())).toBe('')
    await send(2, second.gatewayUrl, 'alice')
    await expect.poll(() => row(page, 'rest'), { timeout: 5_000 }).toEqual(['2', '0'])
    pages.forgive(/net::ERR_/)
  })

  it('shows when the store was unavailable', async () => {
    const redis = await startRedis()
    const base = settingsOf({}, routes)
    const urls = [`redis://127.0.0.1:${redis.port}`]
    const store = { ...base.store, kind: 'redis' as const, urls, timeoutMs: 100 }
    const { apiUrl, gatewayUrl } = await start({ ...base, store })
    try {
      const page = await pages.open(apiUrl)
      await send(2, gatewayUrl, 'alice')
      const state = page.locator('[data-role=store]')
      expect(await state.innerText()).toContain('connected')
      await redis.kill()
      for (let i = 0; i < 30; i += 1) await send(1, gatewayUrl, 'alice')
      await expect.poll(() => state.innerText(), { timeout: 5_000 }).toContain('unavailable')
      expect(await page.locator('.away').innerText()).toMatch(/unavailable since then/)
      await redis.start()
      const back = async () => {
        await send(1, gatewayUrl, 'alice')
        return state.innerText()
      }
      await expect.poll(back, { timeout: 15_000 }).toContain('connected')
      expect(await page.locator('.away').innerText()).toMatch(/unavailable for/)
    } finally {
      await redis.stop()
    }
  })

  it('shows hostile keys as text', async () => {
    const { apiUrl } = await start(settingsOf({}, routes))
    const hostile = [
      '<img src=x onerror="document.title=1">',
      'x'.repeat(1_024),
      'abc\u202egnp.exe\u200b',
      '"><script>document.title=2</script>',
      "../../v1/keys?x='#%00",
      'line\nbreak\ttab',
    ]
    const page = await pages.open(apiUrl, { viewport: { width: 360, height: 740 } })
    for (const key of hostile) {
      const checks = Array(6).fill({ key })
      await fetch(`${apiUrl}/v1/check`, json({ checks }))
    }
    const limited = page.getByRole('region', { name: 'Top clients by refusals' }).getByRole('link')
    await expect.poll(() => limited.count(), { timeout: 5_000 }).toBe(hostile.length)
    for (let i = 0; i < hostile.length; i += 1) {
      await limited.nth(i).click()
      await page.locator('[data-role=tier]').waitFor()
      await expect.poll(() => left(page, 'tiers')).toBe('0')
      await expect.poll(() => page.locator('.decisions').innerText()).toMatch(/refused/)
      expect(await isTooWide(page)).toBe(false)
      await press(page, 'Reset')
      await expect.poll(() => left(page, 'tiers')).toBe('5')
      await press(page, 'Close')
    }
    const shown = await limited.allInnerTexts()
    expect(shown).toContain('abc⟨U+202E⟩gnp.exe⟨U+200B⟩')
    expect(shown).toContain(hostile[0])
    expect(await page.locator('main img, main script').count()).toBe(0)
    expect(await page.title()).toBe('Dashboard · Sluice')
  })

  it.each(['light', 'dark'] as const)(
    'fits a small screen, has names, and can be read in %s',
    async (scheme) => {
      const { apiUrl, gatewayUrl } = await start(settingsOf({}, routes))
      await send(6, gatewayUrl, 'alice')
      const options = { viewport: { width: 360, height: 740 }, colorScheme: scheme }
      const page = await pages.open(`${apiUrl}/?key=x-user%3Aalice`, options)
      await page.locator('[data-role=tier]').waitFor()
      expect(await isTooWide(page)).toBe(false)
      expect(await namelessControls(page)).toEqual([])
      expect(await faintTexts(page)).toEqual([])
      const before = await inkOf(page)
      const markersBefore = await markers(page)
      expect(markersBefore).toHaveLength(4)
      await page.getByLabel('Theme').selectOption(scheme === 'light' ? 'dark' : 'light')
      expect(await inkOf(page)).not.toBe(before)
      const after = await markers(page)
      expect(after.filter((colour, i) => colour === markersBefore[i])).toEqual([])
    },
  )
})

describe('the stream', () => {
  it('accepts one key or none', async () => {
    const { apiUrl } = await start(settingsOf({}))
    const refused = [
      ['?key=', 'SLUICE_KEY'],
      ['?key=a&key=b', 'SLUICE_OPTION'],
      [`?key=${'x'.repeat(1_025)}`, 'SLUICE_KEY'],
    ]
    for (const [query, code] of refused) {
      const response = await fetch(`${apiUrl}/v1/live${query}`)
      expect([query, response.status, await response.json()]).toMatchObject([query, 400, { code }])
    }
    const headers = { 'sec-fetch-site': 'cross-site' }
    expect((await fetch(`${apiUrl}/v1/live`, { headers })).status).toBe(403)
  })
})

describe('the checks of these tests', () => {
  it('detect unnamed controls, pages that are too wide and violations of the policy', async () => {
    const { apiUrl } = await start(settingsOf({}))
    const page = await pages.open(apiUrl)
    await page.getByRole('button', { name: 'Find' }).waitFor()
    await page.evaluate(`
      document.body.append(document.createElement('button'))
      document.body.append(Object.assign(document.createElement('pre'), { textContent: 'x'.repeat(9999) }))`)
    expect(await namelessControls(page)).toHaveLength(1)
    expect(await isTooWide(page)).toBe(true)
    await page.evaluate("document.querySelector('pre').style.color = '#999'")
    expect(await faintTexts(page)).toHaveLength(1)
    await page.addStyleTag({ content: 'x' }).catch(() => {})
    await expect.poll(() => pages.complaints()).toMatchObject([/Content Security Policy/])
    pages.forgive(/Content Security Policy/)
  })
})
