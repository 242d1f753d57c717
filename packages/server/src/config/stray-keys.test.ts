import { compositeKey } from 'sluice'
import { expect, it } from 'vitest'
import { readConfig } from './read-config.ts'
import { strayKeys } from './stray-keys.ts'

const HASH = 'key:ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0'

function strays(key: string | string[], clients: readonly string[], routes: object[] = []) {
  const file = {
    tiers: { free: '1/1s' },
    key,
    clients: Object.fromEntries(clients.map((client) => [client, 'free'])),
    routes,
    jwt: { secret: 'a secret of thirty-two letters or more' },
  }
  return strayKeys(readConfig(JSON.stringify(file), 'a.json', {}))
}

it.each([
  ['address', ['192.0.2.1', '2001:db8:0:7:0:0:0:0/64'], ['2001:db8::7', '192.0.2.1:80', HASH]],
  ['header:X-User', ['x-user:alice', '192.0.2.1', HASH], ['X-User:alice', 'alice', 'x-user:']],
  ['api-key:x-key', [HASH, '192.0.2.1'], ['x-key:alice', 'alice', 'key:abc', `${HASH}=`]],
  ['jwt', ['sub:alice', '192.0.2.1', HASH], ['alice', 'sub:']],
  ['route', ['/**'], ['/search', '192.0.2.1']],
  [
    ['api-key:x-key', 'route'],
    [compositeKey(HASH, '/**'), compositeKey('192.0.2.1', '/**'), HASH],
    [compositeKey(HASH), compositeKey('/**', HASH), '47:key:', '192.0.2.1', '9999:a'],
  ],
])('by %j some keys can be, and others cannot', (key, good, bad) => {
  expect(strays(key, [...good, ...bad]).toSorted()).toEqual(bad.toSorted())
})

it('considers the key of each route that has a limit', () => {
  const routes = [
    { path: '/a', key: 'header:x-user' },
    { path: '/b', key: 'jwt', open: true },
  ]
  expect(strays('address', ['x-user:alice', 'sub:alice'], routes)).toEqual(['sub:alice'])
})
