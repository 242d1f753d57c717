import { posix } from 'node:path'
import { parse } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { RouteSettings } from '../settings.ts'
import { exactPath, plainPath } from './path.ts'
import { createRouter } from './router.ts'

describe('plainPath', () => {
  it.each([
    ['/', '/'],
    ['/A/b?c=/../d', '/a/b'],
    ['/a?%&b=%zz#/../c', '/a'],
    ['/a///b//', '/a/;/;/b/;/'],
    ['/a%3Fb%23c', '/a?b#c'],
    ['/%61%2Db', '/a-b'],
    ['/a.b/..c/.d', '/a.b/..c/.d'],
    ['/caf%C3%A9', '/café'],
    ['/100%25', '/100%'],
    ['/a;x=1/b;y', '/a/b'],
    ['/a%3Bx/b', '/a/b'],
    ['/a/;x=1;y/b/%3B', '/a/;/b/;'],
  ])('of %s is %s', (url, path) => expect(plainPath(url)).toBe(path))

  it.each([
    ...[
      '',
      'a',
      '*',
      'http://a/b',
      'http:/a',
      '//a',
      '//x/login',
      '///a',
      '/\\x/login',
      '/%2f/a',
      '/..',
      '/a/../b',
      '/./a',
      '/a/.',
      '/%2e%2e/a',
      '/.%2E/a',
    ],
    ...[
      '/a%2fb',
      '/a%5Cb',
      '/a\\b',
      '/%',
      '/%zz',
      '/%ff',
      '/a%00b',
      '/a%0d%0ab',
      '/%252e',
      '/a/..;x/b',
      '/caf\u00e9',
      '/a b',
      '/a#/../b',
      '/lo\tgin',
      '/a%09',
      '/%c0%ae%c0%ae/a',
      '/%u002e/a',
    ],
  ])('is undefined for %s', (url) => expect(plainPath(url)).toBeUndefined())
})

describe('the router', () => {
  const find = (routes: Partial<RouteSettings>[], asked: object) => {
    const list = routes.map((route, i) => ({
      settings: {
        name: String(i),
        methods: [],
        path: '/**',
        host: '',
        headers: {},
        isOpen: false,
        ...route,
      },
    }))
    const given = {
      ...{ method: 'GET', path: '/', exact: '/', host: undefined, header: () => [] },
      ...asked,
    }
    return createRouter(list as { settings: RouteSettings }[])(given)?.settings.name
  }

  it.each([
    ['/a', '/a', true],
    ['/a', '/a/', true],
    ['/a', '/a/b', false],
    ['/a', '/ab', false],
    ['/a/*', '/a/b', true],
    ['/a/*', '/a', false],
    ['/a/*', '/a/b/c', false],
    ['/a/**', '/a', true],
    ['/a/**', '/a/b/c', true],
    ['/a/**', '/ab', false],
    ['/a/*/c/**', '/a/b/c/d', true],
    ['/A.b+(c)', '/a.b+(c)', true],
    ['/A.b', '/axb', false],
    ['/**', '/anything\nelse', true],
    ['/', '/', true],
    ['/a/*', '/a/;', true],
    ['/a', '/a/;', true],
    ['/a/*/c', '/a/;/c', true],
    ['/a/c', '/a/;/c', true],
    ['/a/*/c', '/a/;', false],
    ['/', '/;', true],
    ['/a/*/c', '/a/;/;/c', false],
    ['/login', '/login?x', true],
    ['/login', '/login#x', true],
    ['/login', '/;/login?x', true],
  ])('%s for %s: %s', (path, asked, expected) =>
    expect(find([{ path }], { path: asked }) !== undefined).toBe(expected),
  )

  it('takes the first route that matches method, host and headers', () => {
    const routes = [
      { methods: ['POST'] },
      { host: '*.example.com' },
      { host: 'example.com' },
      { headers: { 'x-beta': '1' } },
      {},
    ]
    expect(find(routes, { method: 'POST' })).toBe('0')
    expect(find(routes, { host: 'api.Example.com:8080' })).toBe('1')
    expect(find(routes, { host: 'example.com.' })).toBe('2')
    expect(find(routes, { host: 'badexample.com' })).toBe('4')
    expect(find(routes, { header: () => ['1'] })).toBe('3')
  })

  it('applies a limit for GET to HEAD as well, but not an exception', () => {
    const routes = (isOpen: boolean) => [{ methods: ['GET'], isOpen }, {}]
    expect(find(routes(false), { method: 'HEAD' })).toBe('0')
    expect(find(routes(true), { method: 'HEAD' })).toBe('1')
    expect(find([{ methods: ['HEAD'] }, ...routes(false)], { method: 'HEAD' })).toBe('0')
    expect(find([{ methods: ['HEAD'] }, {}], { method: 'GET' })).toBe('1')
  })

  const open = [{ path: '/health', isOpen: true }, { path: '/**' }]
  it.each([
    ...['/health/', '/HEALTH', '/%68ealth', '/health;x', '/health%3Fx', '/health%23x'],
    ...['/health/;', '/health//'],
  ])('takes no exception from limits for %s', (url) =>
    expect(find(open, { path: plainPath(url), exact: exactPath(url) })).toBe('1'),
  )

  it.each([
    ['/health', '/health'],
    ['/health', '/health?x'],
    ['/a/', '/a/'],
    ['/', '/'],
    ['/static/**', '/static/A/caf%C3%A9;x//%20'],
    ['/café/*', '/caf%C3%A9/B'],
    ['/Docs', '/Docs'],
  ])('takes the exception %s for %s', (path, url) => {
    const routes = [{ path, isOpen: true }, { path: '/**' }]
    expect(find(routes, { path: plainPath(url), exact: exactPath(url) })).toBe('0')
  })
})

/** How servers read a request target: undefined where they refuse it. */
const readers: Record<string, (target: string) => string | undefined> = {
  'new URL': (target) => tried(() => new URL(target, 'http://x.example').pathname),
  'new URL, after the host': (target) => tried(() => new URL(`http://x.example${target}`).pathname),
  'url.parse': (target) => tried(() => parse(target).pathname ?? undefined),
  'url.parse, with hosts': (target) =>
    tried(() => parse(target, false, true).pathname ?? undefined),
  'the text before a question mark': (target) => target.split('?')[0],
  // As nginx and Go clean a path: decoded first, then with single slashes and without dots.
  cleaned: (target) =>
    tried(() =>
      posix.normalize(decodeURIComponent(target.split(/[?#]/)[0]).replace(/^\w+:\/\/[^/]*/, '')),
    ),
  'without parameters': (target) => target.split(/[?#]/)[0].replace(/;[^/]*/g, ''),
  'decoded before the query': (target) => tried(() => decodeURIComponent(target).split(/[?#]/)[0]),
  'decoded before the query, then cleaned': (target) =>
    tried(() => posix.normalize(decodeURIComponent(target).split(/[?#]/)[0])),
}

function tried<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** How a server changes a path before it looks for `/login`: lenient servers, and strict ones. */
function served(path: string | undefined): string | undefined {
  const decoded = path === undefined ? undefined : tried(() => decodeURIComponent(path))
  return decoded?.toLowerCase().replace(/(?<=.)\/$/, '')
}

describe('random request targets', () => {
  const parts = [
    ...['/', '/', '/', '//', 'login', 'login', 'LogIn', '%6cogin', 'x', 'health', 'health'],
    ...['.', '..', '%2e', '%2E%2e', ';x', ';', '%3b', '?', '%3f', '#', '%23', '\\', '%5c', '%2f'],
    ...['\t', '%09', ' ', '%20', '%00', 'http:', '@', ':80', '%25', '+', '\u00e9', '*', '&', '='],
  ]
  const routes = ['/login', '/health'].map((path) => ({
    settings: { methods: [], path, host: '', headers: {}, isOpen: path === '/health' },
  }))
  const route = createRouter(routes as unknown as { settings: RouteSettings }[])

  it('bypass no limit and get no exception on any server', () => {
    const random = seeded(7)
    const wrong = new Set<string>()
    let [limited, open] = [0, 0]
    for (let i = 0; i < 200_000; i += 1) {
      let target = '/'
      for (let n = random() * 5; n > 0; n -= 1) target += parts[Math.floor(random() * parts.length)]
      const path = plainPath(target)
      if (path === undefined) continue
      const asked = { method: 'GET', host: undefined, header: () => [] }
      const found = route({ ...asked, path, exact: exactPath(target) })?.settings.path
      if (found === '/login') limited += 1
      if (found === '/health') open += 1
      for (const [name, read] of Object.entries(readers)) {
        const reading = read(target)
        const isWrong =
          found === '/health' ? reading !== '/health' : served(reading) === '/login' && !found
        if (isWrong) wrong.add(`${name}: ${JSON.stringify(target)}`)
      }
    }
    expect([...wrong].slice(0, 20)).toEqual([])
    expect(limited).toBeGreaterThan(100)
    expect(open).toBeGreaterThan(100)
  })
})

/** Numbers from 0 to 1, the same ones in each run. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
