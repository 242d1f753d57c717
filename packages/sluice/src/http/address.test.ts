import { describe, expect, it } from 'vitest'
import { addressText, parseAddress, parseBlock } from './address.ts'
import { clientAddress, readAddress, type Trust } from './client-address.ts'

const text = (address: string, bits = 128) => {
  const parsed = parseAddress(address)
  return parsed && addressText(parsed, bits)
}

describe('an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:0201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
    ['::', '0:0:0:0:0:0:0:0'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['2001:db8::', '2001:db8:0:0:0:0:0:0'],
    ['2001:DB8::7', '2001:db8:0:0:0:0:0:7'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['::192.0.2.1', '0:0:0:0:0:0:c000:201'],
  ])('%s is %s', (given, expected) => expect(text(given)).toBe(expected))

  it.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '01.2.3.4',
    '1.2.3.4 ',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    'g::',
    '::1.2.3',
    '::1.2.3.4:5',
    '1.2.3.4::',
    '1:2:3:4:5:6:7::8',
    'unknown',
    '_hidden',
    '1'.repeat(100_000),
    ':'.repeat(100_000),
  ])('%.40s is not an address', (given) => expect(parseAddress(given)).toBeUndefined())

  it('of IPv6 is grouped by its network, of IPv4 it is not', () => {
    expect(text('2001:db8:1:2:3:4:5:6', 64)).toBe('2001:db8:1:2:0:0:0:0/64')
    expect(text('2001:db8:1:2ff:3:4:5:6', 56)).toBe('2001:db8:1:200:0:0:0:0/56')
    expect(text('::ffff:10.1.2.3', 64)).toBe('10.1.2.3')
  })
})

describe('a block', () => {
  const has = (block: string, address: string) => {
    const parsed = parseAddress(address)
    return parsed !== undefined && parseBlock(block)?.has(parsed)
  }

  it.each([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.0.0.0/8', '::ffff:10.1.1.1', true],
    ['192.0.2.7', '192.0.2.7', true],
    ['192.0.2.7', '192.0.2.8', false],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::/0', '203.0.113.9', true],
    ['2001:db8::/33', '2001:db8:7fff::1', true],
    ['2001:db8::/33', '2001:db8:8000::1', false],
    ['::ffff:10.0.0.0/104', '10.9.9.9', true],
  ])('%s has %s: %s', (block, address, expected) => expect(has(block, address)).toBe(expected))

  it.each([
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/08',
    '10.0.0.0/8/8',
    '::/129',
    'x/8',
    '/8',
    '10.0.0.0/',
    '::ffff:10.0.0.0/8',
    '::ffff:10.0.0.0/95',
  ])('%s is not a block', (block) => expect(parseBlock(block)).toBeUndefined())
})

describe('the address of a client', () => {
  const of = (peer: string | undefined, headers: Record<string, string>, trust: Trust) => {
    const { address, isVague } = clientAddress({ peer, header: (name) => headers[name] }, trust)
    return address && addressText(address, 128) + (isVague ? ' for somebody' : '')
  }
  const proxies = parseBlock('10.0.0.0/8')!

  it('is not hidden by a quotation mark of the client', () => {
    for (const made of ['for="', 'for="\\', '"', 'for="a;b, c', 'for="" "', 'for=\\"']) {
      expect(of('10.0.0.8', { forwarded: `${made}, for=203.0.113.5` }, 1)).toBe('203.0.113.5')
    }
    const host = 'for=203.0.113.5;host="a\\", for=6.6.6.6"'
    expect(of('10.0.0.8', { forwarded: host }, 1)).toBe('203.0.113.5')
  })

  it('is that of the proxy where two headers name different clients', () => {
    const both = (list: string, forwarded: string) =>
      of('10.0.0.8', { 'x-forwarded-for': list, forwarded }, 1)
    expect(both('6.6.6.6', 'for=203.0.113.5')).toBe('10.0.0.8 for somebody')
    expect(both('203.0.113.5', 'for=203.0.113.5;proto=https')).toBe('203.0.113.5')
  })

  it('is that of the connection if no proxy is trusted, with any headers', () =>
    expect(of('192.0.2.1', { 'x-forwarded-for': '203.0.113.5' }, 0)).toBe('192.0.2.1'))

  it('comes from the given number of proxies, not from forged entries before them', () => {
    const headers = { 'x-forwarded-for': '1.1.1.1, 203.0.113.5, 10.0.0.7' }
    expect(of('10.0.0.8', headers, 1)).toBe('10.0.0.7')
    expect(of('10.0.0.8', headers, 2)).toBe('203.0.113.5')
    expect(of('10.0.0.8', headers, 9)).toBe('1.1.1.1')
  })

  it('is the first that is not a trusted proxy', () => {
    const headers = { 'x-forwarded-for': '1.1.1.1, 203.0.113.5, 10.0.0.7' }
    expect(of('10.0.0.8', headers, proxies)).toBe('203.0.113.5')
    expect(of('192.0.2.1', headers, proxies)).toBe('192.0.2.1')
    expect(of('10.0.0.8', { 'x-forwarded-for': '10.0.0.1' }, proxies)).toBe('10.0.0.1')
  })

  it('is that of the last proxy whose entry is valid', () => {
    for (const bad of [
      'garbage',
      '',
      '1.2.3.4, ',
      ',,,,',
      '999.1.1.1',
      'unknown',
      '_x',
      '\u0000',
    ]) {
      expect(of('10.0.0.8', { 'x-forwarded-for': bad }, 5)).toBe('10.0.0.8 for somebody')
    }
    const last = of('10.0.0.8', { 'x-forwarded-for': 'bad, 203.0.113.5' }, 5)
    expect(last).toBe('203.0.113.5 for somebody')
  })

  it('is read from Forwarded as well', () => {
    const forwarded = 'for=1.1.1.1;proto=https, For="[2001:db8::17]:4711";by=10.0.0.7'
    expect(of('10.0.0.8', { forwarded }, 1)).toBe('2001:db8:0:0:0:0:0:17')
    expect(of('10.0.0.8', { forwarded }, 2)).toBe('1.1.1.1')
    expect(of('10.0.0.8', { forwarded: 'for=_secret' }, 1)).toBe('10.0.0.8 for somebody')
    expect(of('10.0.0.8', { forwarded: 'by=1.1.1.1' }, 1)).toBe('10.0.0.8 for somebody')
  })

  it.each([
    ['192.0.2.1:443', '192.0.2.1'],
    ['[2001:db8::1]', '2001:db8:0:0:0:0:0:1'],
    ['[2001:db8::1]:443', '2001:db8:0:0:0:0:0:1'],
    ['"192.0.2.1:443"', '192.0.2.1'],
    [' 192.0.2.1 ', '192.0.2.1'],
    ['fe80::1%eth0', 'fe80:0:0:0:0:0:0:1'],
  ])('is read from %s', (given, expected) => {
    const address = readAddress(given)
    expect(address && addressText(address, 128)).toBe(expected)
  })

  it('is found fast in a header of ten thousand elements', () => {
    const list = Array.from({ length: 10_000 }, () => '10.0.0.1').join(', ')
    expect(of('10.0.0.8', { 'x-forwarded-for': `203.0.113.5, ${list}` }, proxies)).toBe('10.0.0.1')
    expect(of('10.0.0.8', { forwarded: '"'.repeat(100_000) }, 5)).toBe('10.0.0.8 for somebody')
  })
})
