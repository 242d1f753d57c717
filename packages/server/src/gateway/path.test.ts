import { describe, expect, it } from 'vitest'
import type { RouteSettings } from '../settings.ts'
import { plainPath } from './path.ts'
import { createRouter } from './router.ts'

describe('plainPath', () => {
  it.each([
    ['/', '/'],
    ['/A/b?c=/../d', '/a/b'],
    ['/a?%&b=%zz#/../c', '/a'],
    ['//a///b/', '/a/b/'],
    ['/%61%2Db', '/a-b'],
    ['/a.b/..c/.d', '/a.b/..c/.d'],
    ['/caf%C3%A9', '/café'],
    ['/100%25', '/100%'],
    ['/a;x=1/b;y', '/a/b'],
    ['/a%3Bx/b', '/a/b'],
    ['/a/;x=1;y/b/%3B', '/a/;/b/;'],
  ])('of %s is %s', (url, path) => expect(plainPath(url)).toBe(path))

  it.each([
    ...['', 'a', '*', 'http://a/b', '/..', '/a/../b', '/./a', '/a/.', '/%2e%2e/a', '/.%2E/a'],
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
    ],
  ])('there is none of %s', (url) => expect(plainPath(url)).toBeUndefined())
})

describe('the router', () => {
  const find = (routes: Partial<RouteSettings>[], asked: object) => {
    const list = routes.map((route, i) => ({
      settings: { name: String(i), methods: [], path: '/**', host: '', headers: {}, ...route },
    }))
    const given = { method: 'GET', path: '/', host: undefined, header: () => undefined, ...asked }
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
  ])('%s for %s: %s', (path, asked, expected) =>
    expect(find([{ path }], { path: asked }) !== undefined).toBe(expected),
  )

  it('takes the first that fits method, host and headers', () => {
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
    expect(find(routes, { header: () => '1' })).toBe('3')
  })
})
